package state

import (
	"slices"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

func TestANewLeaderGoesOnWithTheRequest(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.replaceLeader()
	a.wantSent() // the command is in the outbox or the stream
	a.ResendCommands(a.now, func(string) bool { return true })
	a.wantSent("provision " + requestOne)
	a.answers(requestOne, event.RequestProvisioned)
	a.nodesCome()
	a.replaceLeader() // between the answer and the nodes
	a.wantPhase(workload.Admitted, "")
	a.wantSent("present " + requestOne)
}

func TestAnEvictedGangAsksByTheNextNumber(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.nodesCome()
	a.answers(requestOne, event.RequestProvisioned)
	a.created(true)
	a.sent()
	a.evictNow(a.gang(), &workload.Reason{Kind: workload.ReasonDrained, Message: "drained"}, a.now)
	a.wantSent("absent " + requestOne)
	a.removeNode("n0")
	a.removeNode("n1")
	a.released()
	a.step(0)
	a.wantPhase(workload.Queued, workload.ReasonProvisioning)
	if got := a.sent(); !slices.Contains(got, "provision "+requestTwo) {
		t.Errorf("commands are %q, want the next request", got)
	}
}

// The ledger went back to before the request, and the stream still has its command.
func TestARequestThatTheLedgerDoesNotKnowIsTakenBack(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	e := a.gang()
	unknown := a.command(e, event.Provision)
	unknown.Cluster = "c"
	later := *unknown.Provision
	later.Name, later.Number = requestTwo, 2
	unknown.Provision = &later
	a.sent()
	a.Ahead(Ahead{Commands: []*event.GangCommand{unknown}}, a.now)
	if got := a.sent(); len(got) == 0 || got[len(got)-1] != "absent "+requestTwo {
		t.Errorf("commands are %q, want the removal of the unknown request last", got)
	}
	a.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: unknown.Attempt, Gone: true, Released: true}, a.now, a.now)
	a.step(0)
	if p := a.gang().Provisioning; p == nil || p.Number != 3 {
		t.Errorf("the request is %+v, want number 3: 2 is used", p)
	}
}
