package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func updates(u ...workload.PodSetUpdate) func(*event.CheckAnswer) {
	return func(a *event.CheckAnswer) { a.PodSetUpdates = u }
}

func TestACheckAddsToThePods(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	c.node("special", func(n *capacity.Node) {
		n.Labels = map[string]string{"pool": "booked"}
		n.Taints = []capacity.Taint{{Key: "booked", Value: "team", Effect: "NoSchedule"}}
		n.Allocatable = resource.List{"cpu": 8, "pods": 10}
	})
	update := workload.PodSetUpdate{
		PodSet: "workers", Labels: map[string]string{"cost": "a"}, Annotations: map[string]string{"booking": "7"}, NodeSelector: map[string]string{"pool": "booked"},
		Tolerations: []workload.Toleration{{Key: "booked", Value: "team", Effect: "NoSchedule"}},
	}
	c.check("budget", 1, workload.CheckReady, updates(update))
	c.sent()
	c.check("licence", 1, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "workers", NodeSelector: map[string]string{"pool": "other"}}))
	c.wantSent(`licence 1 open: podSetUpdates: nodeSelector pool of pod set "workers" is "booked" already, and the answer has "other"`)
	c.replaceLeader() // what was answered is in the ledger
	c.check("licence", 1, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "workers", Labels: map[string]string{"cost": "a"}}))
	c.wantPhase(workload.Admitted, "")
	if places := c.gang().Placements; len(places) != 1 || places[0].Node != "special" {
		t.Errorf("its places are %+v, want the booked node", places)
	}
	terms := c.command(c.gang(), event.Present).Terms
	if len(terms) == 0 || terms[0].Labels["cost"] != "a" || terms[0].Annotations["booking"] != "7" || terms[0].NodeSelector["pool"] != "booked" || len(terms[0].Tolerations) != 1 {
		t.Errorf("the command has the terms %+v", terms)
	}
	c.evictNow(c.gang(), &workload.Reason{Kind: workload.ReasonDrained, Message: "drained"}, c.now)
	c.released()
	if set := c.gang().PodSets[0].Template; set.NodeSelector != nil || set.Tolerations != nil {
		t.Errorf("the next attempt has %+v, want the pods as they were submitted", set)
	}
}

// TestAWithdrawnCheckTakesBackWhatItAdded: what the next answer adds does not contradict it.
func TestAWithdrawnCheckTakesBackWhatItAdded(t *testing.T) {
	t.Parallel()
	c := newChecking(t, "budget")
	zone := func(name string) func(*event.CheckAnswer) {
		return updates(workload.PodSetUpdate{PodSet: "workers", NodeSelector: map[string]string{"zone": name}})
	}
	c.check("budget", 1, workload.CheckReady, zone("a"))
	c.check("budget", 1, workload.CheckRetry)
	if got := c.gang().PodSets[0].Template.NodeSelector; got != nil {
		t.Errorf("the pods have the selector %v, want that of the submission", got)
	}
	c.step(time.Minute)
	c.sent()
	c.check("budget", 2, workload.CheckReady, zone("b"))
	if got := c.gang().PodSets[0].Template.NodeSelector["zone"]; got != "b" {
		t.Errorf("the pods have zone %q, want b", got)
	}
}
