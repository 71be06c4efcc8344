package state

import (
	"testing"

	"muster.dev/muster/pkg/message/event"
)

// What keeps a request from being created is the reason of its workload as long as that
// lasts. It is no failed request, and the same answer again is no change.
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
		{event.RequestAccepted, "0 of 2 nodes", true, asked, 0},
	} {
		changes := report(step.state, step.message, step.created)
		if got := a.gang().Reason.Message; got != step.want || changes != step.changes {
			t.Errorf("after %s %q the reason is %q with %d events, want %q with %d", step.state, step.message, got, changes, step.want, step.changes)
		}
	}
	if failures := a.gang().Provisioning.Failures; failures != 0 {
		t.Errorf("%d requests have failed, want none", failures)
	}
}
