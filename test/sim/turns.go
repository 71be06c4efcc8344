package sim

import (
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
