package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
)

// What keeps a request from being created is the reason of its workload as long as that
// lasts. It is no failed request, and the same answer again is no change. How far the autoscaler is
// is in the reason, too, bounded; an estimate that changes is stored and makes no event.
func TestAReasonHasWhyARequestIsNotCreated(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	asked := a.gang().Reason.Message
	a.Flush()
	report := func(state, message string, created bool) (changes int) {
		a.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: a.gang().Attempt, Provision: &event.ProvisionStatus{
			Name: requestOne, State: state, Message: message, Created: created,
		}}, a.now, a.now)
		a.step(0)
		for _, m := range a.Flush().Messages {
			if _, is := m.Payload.(*event.WorkloadChanged); is {
				changes++
			}
		}
		return changes
	}
	for _, step := range []struct {
		state, message string
		created        bool
		want           string
		changes        int
	}{
		{event.RequestPending, "no such kind", false, "ProvisioningRequest " + requestOne + " cannot be created: no such kind", 1},
		{event.RequestPending, "no such kind", false, "ProvisioningRequest " + requestOne + " cannot be created: no such kind", 0},
		{event.RequestPending, "", true, asked, 1},
		{event.RequestPending, "no  class\nof that name", true, asked + "; the autoscaler has not accepted the request: no class of that name", 1},
		{event.RequestAccepted, "", true, asked + "; the autoscaler has accepted the request", 0},
		{event.RequestAccepted, "0 of 2 nodes", true, asked + "; the autoscaler has accepted the request: 0 of 2 nodes", 0},
		{event.RequestAccepted, strings.Repeat("x", 3000), true, asked + "; the autoscaler has accepted the request: " + strings.Repeat("x", 300) + "...", 0},
	} {
		changes := report(step.state, step.message, step.created)
		if got := a.gang().Reason.Message; got != step.want || changes != step.changes {
			t.Errorf("after %s %q the reason is %q with %d events, want %q with %d", step.state, step.message, got, changes, step.want, step.changes)
		}
	}
	explained, err := a.Explain(gangID, a.now)
	if err != nil || !strings.Contains(explained.Reason.Message, "the autoscaler has accepted the request: xxx") {
		t.Errorf("explained is %+v, %v; want how far the autoscaler is", explained.Reason, err)
	}
	a.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: a.gang().Attempt, Provision: &event.ProvisionStatus{
		Name: requestOne, State: event.RequestAccepted, Message: "1 of 2 nodes", Created: true,
	}}, a.now, a.now)
	a.step(time.Second)
	if updated := a.Flush().Updated; len(updated) != 1 || !strings.HasSuffix(updated[0].Reason.Message, "1 of 2 nodes") {
		t.Errorf("stored are %+v, want the last progress", updated)
	}
	if failures := a.gang().Provisioning.Failures; failures != 0 {
		t.Errorf("%d requests have failed, want none", failures)
	}
}
