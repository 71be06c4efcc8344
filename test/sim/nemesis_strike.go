package sim

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
)

func (n *nemesis) strike(f TimedFault) {
	w := n.w
	what := ""
	switch f.Fault {
	case Crash, Pause, CutFrom, ClockJump, PauseLeader, LateLeader:
		what = n.strikeMachine(f)
	case NATSAway, NATSWiped, NATSTail:
		w.net.away(natsServer, f.For)
		if f.Fault == NATSWiped {
			w.net.wipe()
		} else if f.Fault == NATSTail {
			w.net.loseTail(1 + int(f.Pick%40))
		}
		what = f.For.String()
	case Purged:
		what = n.purge(f)
	case PostgresAway:
		w.net.away(postgresServer, f.For)
		w.disk.dropSession()
		what = f.For.String()
	case APIAway:
		w.net.away(apiServer, f.For)
		what = f.For.String()
	case ServiceAway:
		what = n.strikeService(f)
	case LinkCut:
		what = n.cutLink(f)
	case Refusal:
		what = w.disk.refuse(f)
	case Absurd:
		what = w.submits.absurd(f)
	case Lie:
		what = w.submits.lie(f)
	case Older:
		what = n.backInTime(f)
	case Reruled:
		what = w.operator.strike(f)
	case QueueHeld:
		what = w.operator.holdQueue(f)
	case CancelEarly:
		what = w.submits.cancelEarly(f)
	case Bare:
		what = w.net.lay(f.Pick)
	case Full:
		what = w.net.fill(f)
	case Repeated:
		what = w.submits.repeat(f)
	case Held, Requeued, Ranked, MovedOver:
		what = w.submits.operate(f)
	case Resized:
		what = w.cluster.resize(f)
	case Cancel:
		what = w.submits.cancelAny(f.Pick)
	default:
		what = w.cluster.strike(f)
	}
	if what != "" {
		if f.For >= longAway {
			w.check.made[madeAway]++
		}
		n.note(f.Fault, what)
		n.last = later(n.last, w.now.Add(f.For)) // when it is over
		n.happened.Timed = append(n.happened.Timed, f)
	}
}

func (n *nemesis) strikeMachine(f TimedFault) string {
	w := n.w
	m := w.machines[f.Pick%uint64(len(w.machines))]
	if f.Fault == PauseLeader || f.Fault == LateLeader {
		for _, each := range w.machines {
			if each.name == w.disk.holder {
				m = each
			}
		}
	}
	if m.dead {
		return ""
	}
	switch f.Fault {
	case Crash:
		m.crash()
	case Pause, PauseLeader:
		m.paused = w.now.Add(f.For)
		return fmt.Sprintf("%s for %s", m.name, f.For)
	case LateLeader:
		w.net.hold(m.name, f.For)
		life := m.life
		w.after(time.Duration(f.Pick%uint64(lateFor)), func() {
			if m.life == life && !m.dead {
				m.paused = w.now.Add(f.For)
			}
		})
		return fmt.Sprintf("%s for %s", m.name, f.For)
	case CutFrom:
		server := servers[(f.Pick/64)%uint64(len(servers))]
		m.cut[server] = true
		w.after(f.For, func() {
			delete(m.cut, server)
			w.net.reconnected(m, server)
		})
		return fmt.Sprintf("%s from %s for %s", m.name, server, f.For)
	case ClockJump:
		m.skew = time.Duration(int64(f.Pick%600)-300) * time.Second
		w.after(f.For, func() { m.skew = 0 })
		return fmt.Sprintf("%s by %s for %s", m.name, m.skew, f.For)
	}
	return m.name
}

// stillFor is how long the leader stands still before a purge.
func stillFor(pick uint64) time.Duration {
	return 300*time.Millisecond + time.Duration(pick/256%2500)*time.Millisecond
}

// purge takes the messages of a stream away; half of the time after the leader has
// stood still for a moment, so that it has not read the last ones.
func (n *nemesis) purge(f TimedFault) string {
	w := n.w
	name := []string{0: bus.StatusStream, 1: bus.CapacityStream, ofCommands: bus.DispatchStream}[f.Pick%3]
	if f.Pick&unread == 0 {
		if !w.net.purge(name, f.Pick&64 != 0) {
			return ""
		}
		return name
	}
	still := stillFor(f.Pick)
	for _, m := range w.machines {
		if m.name == w.disk.holder && !m.dead {
			m.paused = w.now.Add(still)
		}
	}
	w.after(still-time.Millisecond, func() { w.net.purge(name, f.Pick&64 != 0) })
	return fmt.Sprintf("%s, unread for %s", name, still)
}
