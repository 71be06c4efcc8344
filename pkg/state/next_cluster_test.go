package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

const requestThree = "rayjob-job-50e72-nodes-3"

// newAskerOfTwo is an asker that may run in the clusters c and d, and asks in c first.
func newAskerOfTwo(t *testing.T) *asker {
	t.Helper()
	a := newAskerQueue(t)
	a.seq++
	a.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: a.seq}, Node: capacity.Node{
		Cluster: "d", Name: "full", Ready: true, Allocatable: resource.List{"cpu": 1, "pods": 10},
	}}, a.now)
	a.submit(workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}})
	a.wantAskedIn("c")
	a.wantSent("provision " + requestOne)
	return a
}

func (a *asker) wantAskedIn(cluster string) {
	a.Helper()
	if p := a.gang().Provisioning; !hasRequest(a.gang()) || p.Cluster != cluster {
		a.Errorf("the gang has the request %+v, want one in %s", p, cluster)
	}
}

// answersIn reports what became of a request in a cluster.
func (a *asker) answersIn(cluster, request, state string) {
	a.Status(&event.GangStatus{Workload: gangID, Cluster: cluster, Attempt: a.gang().Attempt, Provision: &event.ProvisionStatus{
		Name: request, State: state, Message: "out of stock", Created: true,
	}}, a.now, a.now)
	a.step(0)
}

// Where there are no nodes in one cluster, the next one is asked at once, and the reason names
// both. When none has nodes, that is one failure, and the first is asked again after the back-off.
func TestTheNextClusterIsAskedWhenOneIsOutOfStock(t *testing.T) {
	t.Parallel()
	a := newAskerOfTwo(t)
	a.answersIn("c", requestOne, event.RequestFailed)
	a.wantAskedIn("d")
	a.wantSent("forgotten "+requestOne, "provision "+requestTwo)
	a.wantReason(workload.ReasonProvisioning, "are asked for in cluster d (AdmissionCheck \"nodes\"); its quota is reserved; before that it asked in vain in cluster c")
	if failures := a.gang().Provisioning.Failures; failures != 0 {
		t.Errorf("%d rounds have failed, want none", failures)
	}
	a.replaceLeader()
	a.answersIn("c", requestOne, event.RequestProvisioned) // of a request that is over
	a.wantAskedIn("d")
	a.answersIn("d", requestTwo, event.RequestFailed)
	a.wantPhase(workload.Queued, workload.ReasonBackoff)
	a.wantReason(workload.ReasonBackoff, "Failed: out of stock; before that it asked in vain in cluster c")
	a.wantSent("forgotten " + requestTwo)
	a.step(time.Minute)
	a.wantAskedIn("c")
	a.wantSent("provision " + requestThree)
	if p := a.gang().Provisioning; p.Failures != 1 || len(p.TriedClusters) > 0 {
		t.Errorf("the gang has the request %+v, want one failure and no cluster tried", p)
	}
}

// A gang starts in the second cluster, and asks in the first again after an eviction.
func TestAGangStartsInTheNextCluster(t *testing.T) {
	t.Parallel()
	a := newAskerOfTwo(t)
	a.answersIn("c", requestOne, event.RequestFailed)
	for _, name := range []string{"n0", "n1"} {
		a.node(name, func(n *capacity.Node) { n.Cluster = "d" })
	}
	a.answersIn("d", requestTwo, event.RequestProvisioned)
	a.wantPhase(workload.Admitted, "")
	if e := a.gang(); e.Cluster != "d" || len(e.Provisioning.TriedClusters) > 0 {
		t.Errorf("it is admitted in %s with %+v, want d, and no cluster tried", e.Cluster, e.Provisioning)
	}
}

// When the next cluster is cordoned before it is asked, the first is asked again after the back-off.
// No round has failed by that: not all clusters were asked.
func TestAGangAsksAgainWhenTheNextClusterIsGone(t *testing.T) {
	t.Parallel()
	a := newAskerOfTwo(t)
	a.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: a.gang().Attempt, Provision: &event.ProvisionStatus{
		Name: requestOne, State: event.RequestFailed, Message: "out of stock", Created: true,
	}}, a.now, a.now)
	policy := a.policy
	policy.ClusterCordons = []quota.ClusterCordon{{Name: "d", Since: a.now, By: "ann"}}
	a.ApplyConfiguration([]Queue{a.queues["q"]}, policy, a.Version()+1)
	a.step(0)
	a.wantSent("forgotten " + requestOne)
	if hasRequest(a.gang()) {
		t.Fatalf("it asks where there were no nodes: %+v", a.gang().Provisioning)
	}
	a.step(time.Minute - time.Second)
	a.wantSent()
	a.step(time.Second)
	a.wantAskedIn("c")
	a.wantSent("provision " + requestTwo)
	if p := a.gang().Provisioning; p.Failures != 0 || len(p.TriedClusters) > 0 {
		t.Errorf("the gang has the request %+v, want no failure and no cluster tried", p)
	}
}
