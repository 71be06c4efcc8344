package state

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// newFlavored is an asker whose queue has the flavors reserved and spot, in this order, and goes
// on to the next one when there are no nodes. Only nodes of these flavors hold the gang.
func newFlavored(t *testing.T, onFlavors ...string) *asker {
	t.Helper()
	plain := newAsker(t)
	settings := plain.Settings()
	a := &asker{&stage{T: t, now: plain.now, pods: map[string]event.GangPod{}}}
	policy := settings.Policy
	policy.Flavors = nil
	flavors := []quota.FlavorQuotas{}
	for _, name := range []string{"reserved", "spot"} {
		policy.Flavors = append(policy.Flavors, quota.Flavor{Name: name, NodeLabels: map[string]string{"pool": name}})
		flavors = append(flavors, quota.FlavorQuotas{Name: name, Resources: []quota.ResourceQuota{{Name: "cpu", Nominal: 8}}})
	}
	policy.ClusterQueues = slices.Clone(policy.ClusterQueues)
	policy.ClusterQueues[0].ResourceGroups = []quota.ResourceGroup{{CoveredResources: []resource.Name{"cpu"}, Flavors: flavors}}
	policy.ClusterQueues[0].Fungibility = &quota.FlavorFungibility{WhenNotProvisioned: quota.TryNextFlavor, ProvisionWithinSeconds: 600}
	policy.ClusterQueues[0].AdmissionChecks = nil
	policy.ClusterQueues[0].ChecksStrategy = &quota.ChecksStrategy{AdmissionChecks: []quota.FlavoredCheck{{Name: "nodes", OnFlavors: onFlavors}}}
	a.State = New(1, Stored{MaxEvent: 1 << 20, Queues: settings.Queues, Policy: policy})
	a.node("full", func(n *capacity.Node) { n.Allocatable = resource.List{"cpu": 1, "pods": 10} })
	a.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: gangID, Queue: "q", Kind: "RayJob", Name: "job", PodSets: []workload.PodSet{podSet("workers", workload.RoleWorker, 2)},
	}}, nil, a.now)
	a.step(0)
	return a
}

func (a *asker) wantFlavor(want string) {
	a.Helper()
	p := a.gang().Provisioning
	if p == nil || !p.Open || p.Flavors[0].Flavors["cpu"] != want {
		a.Errorf("the request is %+v, want one by flavor %s", p, want)
	}
}

// TestTheNextFlavorIsAskedForWhenOneIsOutOfStock, at once, and the first again after the
// back-off when none has nodes.
func TestTheNextFlavorIsAskedForWhenOneIsOutOfStock(t *testing.T) {
	t.Parallel()
	a := newFlavored(t)
	a.wantFlavor("reserved")
	a.wantSent("provision " + requestOne)
	a.answers(requestOne, event.RequestFailed)
	a.wantFlavor("spot")
	a.wantSent("forgotten "+requestOne, "provision "+requestTwo)
	if failures := a.gang().Provisioning.Failures; failures != 0 {
		t.Errorf("%d rounds have failed, want none", failures)
	}
	a.replaceLeader()
	a.answers(requestTwo, event.RequestFailed)
	a.wantPhase(workload.Queued, workload.ReasonBackoff)
	a.wantSent("forgotten " + requestTwo)
	a.step(time.Minute)
	a.wantFlavor("reserved")
	if failures := a.gang().Provisioning.Failures; failures != 1 {
		t.Errorf("%d rounds have failed, want one", failures)
	}
}

// TestARequestThatTakesTooLongGivesWayToTheNextFlavor; that of the last flavor goes on.
func TestARequestThatTakesTooLongGivesWayToTheNextFlavor(t *testing.T) {
	t.Parallel()
	a := newFlavored(t)
	a.answers(requestOne, event.RequestAccepted)
	a.step(599 * time.Second)
	a.wantFlavor("reserved")
	a.step(time.Second)
	a.step(0)
	a.wantFlavor("spot")
	a.sent()
	a.step(time.Hour)
	a.wantSent()
	for _, name := range []string{"n0", "n1"} {
		a.node(name, func(n *capacity.Node) { n.Labels = map[string]string{"pool": "spot"} })
	}
	a.answers(requestTwo, event.RequestProvisioned)
	a.wantPhase(workload.Admitted, "")
	if got := a.gang().Flavors[0].Flavors["cpu"]; got != "spot" {
		t.Errorf("it is charged to %s, want spot", got)
	}
}

// TestAGangWaitsForAFlavorThatIsNotAskedFor, and asks for the first again after a back-off.
func TestAGangWaitsForAFlavorThatIsNotAskedFor(t *testing.T) {
	t.Parallel()
	a := newFlavored(t, "reserved")
	a.answers(requestOne, event.RequestFailed)
	a.wantPhase(workload.Queued, "")
	if p := a.gang().Provisioning; p.Open {
		t.Errorf("nodes are asked for: %+v", p)
	}
	if why := a.gang().Reason.Message; strings.Contains(why, "back-off") {
		t.Errorf("it waits because %q, want the nodes of spot", why)
	}
	a.step(59 * time.Second)
	if p := a.gang().Provisioning; p.Open {
		t.Errorf("nodes are asked for too early: %+v", p)
	}
	a.step(time.Second)
	a.step(0)
	a.wantFlavor("reserved")
	a.answers(requestTwo, event.RequestFailed)
	for _, name := range []string{"n0", "n1"} {
		a.node(name, func(n *capacity.Node) { n.Labels = map[string]string{"pool": "spot"} })
	}
	a.step(0)
	a.wantPhase(workload.Admitted, "")
}

// TestTheDemandGoesToTheNextFlavor of a queue without a check, when no nodes were added of
// the first one within the time of the queue.
func TestTheDemandGoesToTheNextFlavor(t *testing.T) {
	t.Parallel()
	a := newFlavored(t, "none") // the check is for a flavor that the queue does not have
	want := func(flavor string) {
		t.Helper()
		d := a.Demand(10, a.now)
		if len(d.Shapes) != 1 || d.Shapes[0].PodSets[0].NodeSelector["pool"] != flavor {
			t.Errorf("the demand is %+v, want one gang by flavor %s", d, flavor)
		}
	}
	want("reserved")
	a.step(599 * time.Second)
	want("reserved")
	a.step(time.Second)
	want("spot")
	a.step(600 * time.Second)
	want("reserved")
	for _, name := range []string{"n0", "n1"} {
		a.node(name, func(n *capacity.Node) { n.Labels = map[string]string{"pool": "spot"} })
	}
	a.step(0)
	a.wantPhase(workload.Admitted, "")
	if d := a.Demand(10, a.now); d.Gangs != 0 {
		t.Errorf("the demand is %+v, want none", d)
	}
}
