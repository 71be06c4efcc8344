package sim

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
)

// strike brings a fault about and notes it, if it has struck anything.
func (n *nemesis) strike(f TimedFault) {
	what := n.strikeAt(f)
	if what == "" {
		return
	}
	if f.For >= longAway {
		n.w.check.made[madeAway]++
	}
	n.note(f.Fault, what)
	n.last = later(n.last, n.w.now.Add(f.For)) // when it is over
	n.happened.Timed = append(n.happened.Timed, f)
}

// strikeAt brings a fault about and returns what it has struck, or "".
func (n *nemesis) strikeAt(f TimedFault) string {
	w := n.w
	switch f.Fault {
	case Crash, Pause, CutFrom, ClockJump, PauseLeader, LateLeader:
		return n.strikeMachine(f)
	case NATSAway, NATSWiped, NATSTail, PostgresAway, APIAway:
		return n.strikeServer(f)
	case Purged:
		return n.purge(f)
	case ServiceAway:
		return n.strikeService(f)
	case LinkCut:
		return n.cutLink(f)
	case Refusal:
		return w.disk.refuse(f)
	case Absurd:
		return w.submits.absurd(f)
	case Lie:
		return w.submits.lie(f)
	case Older:
		return n.backInTime(f)
	case Reruled:
		return w.operator.strike(f)
	case QueueHeld:
		return w.operator.holdQueue(f)
	case CancelEarly:
		return w.submits.cancelEarly(f)
	case Bare:
		return w.net.lay(f.Pick)
	case Full:
		return w.net.fill(f)
	case Missed:
		return n.missCommands(f)
	case Repeated:
		return w.submits.repeat(f)
	case Held, Requeued, Ranked, MovedOver:
		return w.submits.operate(f)
	case Resized:
		return w.cluster.resize(f)
	case Cancel:
		return w.submits.cancelAny(f.Pick)
	default:
		return w.cluster.strike(f)
	}
}

// strikeServer makes NATS, Postgres or the API server unreachable for a time. NATS may lose
// messages by it, and Postgres ends the leader's session.
func (n *nemesis) strikeServer(f TimedFault) string {
	w := n.w
	switch f.Fault {
	case PostgresAway:
		w.net.away(postgresServer, f.For)
		w.disk.dropSession()
	case APIAway:
		w.net.away(apiServer, f.For)
	default:
		w.net.away(natsServer, f.For)
		switch f.Fault {
		case NATSWiped:
			w.net.wipe()
		case NATSTail:
			w.net.loseTail(1 + int(f.Pick%40))
		}
	}
	return f.For.String()
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
	if f.Pick&ofEvents != 0 {
		name = bus.EventsStream
	}
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
