package state

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// newSilenced is an asker whose gang may be of an object in the cluster; the watcher of the cluster
// reports nothing from now on.
func newSilenced(t *testing.T, submitter string) *asker {
	t.Helper()
	a := newAskerQueue(t)
	a.SetSilentAfter(45 * time.Second)
	a.SetAnswerTimeout(10 * time.Second)
	a.CatchUp()
	a.BeginDecisions(a.now)
	a.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: gangID, Queue: "q", Namespace: "ns", Kind: "RayJob", Name: "job", Submitter: submitter,
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 2, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, a.now)
	a.step(0)
	a.wantSent("provision " + requestOne)
	return a
}

// A gang can ask nowhere else than in the cluster of its object, and nothing can be deleted there
// while it is silent. Its request stays, by the same number, and serves when the cluster is back.
func TestAGangKeepsItsRequestInItsSilentHome(t *testing.T) {
	t.Parallel()
	for _, ready := range []bool{false, true} {
		t.Run(fmt.Sprintf("provisioned before %t", ready), func(t *testing.T) {
			t.Parallel()
			a := newSilenced(t, workload.ByKubernetes+"/c/ana")
			if ready {
				a.answers(requestOne, event.RequestProvisioned)
			}
			a.step(time.Minute)
			a.step(2 * settleProvisioned)
			a.step(time.Hour)
			a.wantSent()
			if !hasRequest(a.gang()) {
				t.Fatalf("the gang has the request %+v", a.gang().Provisioning)
			}
			a.nodesCome()
			a.answers(requestOne, event.RequestProvisioned)
			a.step(0)
			a.wantPhase(workload.Admitted, "")
			a.wantSent("present " + requestOne)
		})
	}
}

// A gang that may run elsewhere asks elsewhere.
func TestARequestInASilentClusterEnds(t *testing.T) {
	t.Parallel()
	a := newSilenced(t, "")
	a.step(time.Minute)
	a.wantSent()
	a.step(settleProvisioned)
	a.wantSent("forgotten " + requestOne)
	if p := a.gang().Provisioning; p.Open || p.Failures != 0 {
		t.Errorf("the gang has the request %+v, want none, and no failure", p)
	}
}

// A leader may know no report of the cluster: it has no node, and the stream has lost that its
// watcher has listed none.
func TestARequestInAClusterOfWhichNoReportIsLeftEnds(t *testing.T) {
	t.Parallel()
	a := newSilenced(t, "")
	clear(a.nodes) // the ledger has none either
	a.replaceLeader(func() {
		a.SetSilentAfter(45 * time.Second)
		a.SetAnswerTimeout(10 * time.Second)
	})
	a.step(time.Minute)
	a.wantSent()
	a.step(settleProvisioned)
	a.wantSent("forgotten " + requestOne)
}

// When its cluster is back, a gang whose nodes were said to be there has its time again to find
// places on them.
func TestTheTimeForPlacesBeginsAgainAfterASilence(t *testing.T) {
	t.Parallel()
	a := newSilenced(t, workload.ByKubernetes+"/c/ana")
	a.node("n0", nil) // one of two
	a.answers(requestOne, event.RequestProvisioned)
	a.step(time.Minute)
	a.step(time.Hour)
	a.wantSent()
	a.node("n0", nil)
	a.pass(settleProvisioned - 2*time.Second)
	a.wantSent()
	a.pass(4 * time.Second)
	a.wantSent("forgotten " + requestOne)
}

// So it is under the next leader, which has not seen the silence.
func TestTheTimeAfterASilenceOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	a := newSilenced(t, workload.ByKubernetes+"/c/ana")
	a.node("n0", nil) // one of two
	a.answers(requestOne, event.RequestProvisioned)
	a.step(time.Minute)
	a.step(time.Hour)
	a.node("n0", nil)
	a.pass(time.Minute)
	a.sent()
	a.replaceLeader(func() {
		a.SetSilentAfter(45 * time.Second)
		a.SetAnswerTimeout(10 * time.Second)
		a.HeardBefore(&event.CapacitySynced{Cluster: "c", Version: event.Version{Session: 1}}, a.now.Add(-time.Second), a.now)
	})
	a.pass(settleProvisioned - time.Minute - 2*time.Second)
	a.wantSent()
	a.pass(4 * time.Second)
	a.wantSent("forgotten " + requestOne)
}

// For as long as the gang then waits, its places are kept for it.
func TestPlacesAreKeptAgainAfterASilence(t *testing.T) {
	t.Parallel()
	a := newSilenced(t, workload.ByKubernetes+"/c/ana")
	a.addPlainQueue()
	a.node("n0", nil) // one of two
	a.answers(requestOne, event.RequestProvisioned)
	a.step(time.Minute)
	a.step(time.Hour)
	a.node("n0", nil)
	a.submitOne("second")
	a.wantKept("second")
	a.pass(settleProvisioned - 2*time.Second)
	a.wantKept("second")
	a.pass(4 * time.Second)
	if e := a.live.Get("second"); e.Phase != workload.Admitted {
		t.Errorf("after the time the second gang is %s with %+v", e.Phase, e.Reason)
	}
}
