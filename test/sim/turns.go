package sim

import (
	"math/rand/v2"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

// turns notes when the turn of a gang to show itself ends between the two looks of the next one at
// who is shown: its command is withdrawn, and its pods are still there.
type turns struct {
	w        *World
	commands map[workload.ID]*event.GangCommand
	looks    map[*proc]*looks
}

// looks are those of one pass of a gang.
type looks struct {
	of    workload.ID
	shown map[string]bool // of the last look, by the UID of a pod; nil before the first
}

func newTurns(w *World) *turns {
	return &turns{w, map[workload.ID]*event.GangCommand{}, map[*proc]*looks{}}
}

// commanded takes in a command as the dispatcher does: an older one changes nothing.
func (t *turns) commanded(c *event.GangCommand) {
	last := t.commands[c.Workload]
	if last == nil || c.Epoch > last.Epoch || c.Epoch == last.Epoch && c.Order >= last.Order {
		t.commands[c.Workload] = c
	}
}

// begin begins a pass, in which a gang may look twice.
func (t *turns) begin(of workload.ID) { t.looks[t.w.cur] = &looks{of: of} }

// look compares who is shown with the look before.
func (t *turns) look(pods []dispatcher.Placeholder) {
	pass := t.looks[t.w.cur]
	if pass == nil { // the sweep looks once
		return
	}
	now := map[string]bool{}
	for _, pod := range pods {
		c := t.commands[pod.Workload]
		shown := c != nil && c.State == event.Provision && c.Provision != nil && c.Provision.Name == pod.Request
		if now[pod.UID] = shown; pass.shown[pod.UID] && !shown && pod.Workload != pass.of {
			t.w.check.made[madeTurnBetween]++
		}
	}
	pass.shown = now
}

// drawMissed draws when commands are purged that the dispatchers have not read: among them may be
// the one that ends the turn of a gang to show itself. Then the dispatcher goes on with the command
// that it knows, beside that of the next gang, until it asks queue-manager.
func drawMissed(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, 29))
	for range 1 + random.IntN(4) {
		timed = append(timed, TimedFault{
			At: time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond), Fault: Missed,
			For: 5*time.Second + time.Duration(random.Int64N(int64(20*time.Second))).Truncate(time.Millisecond),
		})
	}
	return timed
}

// missCommands cuts the dispatchers from NATS for a while, at the end of which the stream of commands
// is purged.
func (n *nemesis) missCommands(f TimedFault) string {
	w := n.w
	for _, m := range w.machines {
		if strings.HasPrefix(m.name, "dispatcher") {
			m.cut[natsServer] = true
		}
	}
	w.after(f.For, func() {
		w.net.purge(bus.DispatchStream, false)
		for _, m := range w.machines {
			if strings.HasPrefix(m.name, "dispatcher") {
				delete(m.cut, natsServer)
				w.net.reconnected(m, natsServer)
			}
		}
	})
	return f.For.String()
}

// listsSlowly has an API server take long, now and then, to list the pods of all namespaces.
func (w *World) listsSlowly() {
	if w.cur != nil && w.random.IntN(4) == 0 {
		w.cur.sleep(w.between(100*time.Millisecond, 1500*time.Millisecond))
	}
}
