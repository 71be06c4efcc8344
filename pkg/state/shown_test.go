package state

import (
	"encoding/json"
	"fmt"
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

// newShower is an asker whose queue has gangs show themselves as pods, for ten minutes.
func newShower(t *testing.T) *asker {
	t.Helper()
	return newShowerOf(t, workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}})
}

func newShowerOf(t *testing.T, template workload.Template) *asker {
	t.Helper()
	plain := newAskerQueue(t)
	settings := plain.Settings()
	policy := settings.Policy
	policy.ClusterQueues = slices.Clone(policy.ClusterQueues)
	policy.ClusterQueues[0].ResourceGroups = []quota.ResourceGroup{{
		CoveredResources: []resource.Name{"cpu"},
		Flavors:          []quota.FlavorQuotas{{Name: "default", Resources: []quota.ResourceQuota{{Name: "cpu", Nominal: 100}}}},
	}}
	policy.ProvisioningConfigs = slices.Clone(policy.ProvisioningConfigs)
	policy.ProvisioningConfigs[0].Class, policy.ProvisioningConfigs[0].Retry, policy.ProvisioningConfigs[0].MergePolicy = workload.PlaceholderClass, nil, ""
	policy.ProvisioningConfigs[0].Parameters = map[string]string{workload.DeadlineParameter: "600"}
	a := &asker{&stage{T: t, now: plain.now, pods: map[string]event.GangPod{}}}
	a.State = New(1, Stored{MaxEvent: 1 << 20, Queues: settings.Queues, Policy: policy})
	a.node("full", func(n *capacity.Node) { n.Allocatable = resource.List{"cpu": 1, "pods": 10} })
	a.submit(template)
	a.wantSent("provision " + requestOne)
	return a
}

func (a *asker) tick() {
	a.Helper()
	a.Tick(a.now, time.Minute)
	a.step(0)
}

func (a *asker) wantReason(kind workload.ReasonKind, message string) {
	a.Helper()
	if why := a.gang().Reason; why == nil || why.Kind != kind || !strings.Contains(why.Message, message) {
		a.Errorf("it waits for %+v, want %s with %q", why, kind, message)
	}
}

// A gang that shows itself is admitted as soon as its pods have places. The command to start it
// names the pods that have to go first.
func TestAGangThatIsShownStartsOnTheNodesThatCome(t *testing.T) {
	t.Parallel()
	a := newShower(t)
	a.answers(requestOne, event.RequestProvisioned)
	a.wantReason(workload.ReasonFit, "it is shown as placeholder pods in cluster c, but the nodes do not hold all pods")
	a.node("one", func(n *capacity.Node) { n.Allocatable = resource.List{"cpu": 4, "pods": 10} })
	a.step(0)
	if got := a.gang().Phase; got != workload.Queued {
		t.Fatalf("with a node for half of the gang it is %s", got)
	}
	a.node("two", func(n *capacity.Node) { n.Allocatable = resource.List{"cpu": 4, "pods": 10} })
	a.step(0)
	if got := a.gang().Phase; got != workload.Admitted {
		t.Errorf("with nodes for all of its pods it is %s", got)
	}
	a.wantSent("present " + requestOne)
}

// Its time ends, whether the pods could be shown or not: it takes them back, backs off longer and
// longer, and never fails for it.
func TestAGangThatIsShownInVainBacksOff(t *testing.T) {
	t.Parallel()
	for _, shown := range []bool{true, false} {
		t.Run(fmt.Sprintf("shown %t", shown), func(t *testing.T) {
			a := newShower(t)
			if shown {
				a.answers(requestOne, event.RequestProvisioned)
			}
			a.now = a.now.Add(10*time.Minute - time.Second)
			a.tick()
			a.wantSent()
			a.now = a.now.Add(time.Second)
			a.tick()
			a.wantSent("forgotten " + requestOne)
			a.wantReason(workload.ReasonBackoff, "placeholder pods "+requestOne+" were shown in cluster c since")
			for round := 2; round < 8; round++ {
				a.now = a.now.Add(time.Hour)
				a.tick()
				if p := a.gang().Provisioning; !p.Open || p.Number != round {
					t.Fatalf("round %d: the request is %+v", round, p)
				}
				a.now = a.now.Add(10 * time.Minute)
				a.tick()
			}
			if got := a.gang().Phase; got != workload.Queued {
				t.Errorf("after seven rounds it is %s, want queued", got)
			}
		})
	}
}

// A queue that is held has nothing shown, and nothing that is shown fails for it.
func TestAGangOfAHeldQueueIsNotShown(t *testing.T) {
	t.Parallel()
	a := newShower(t)
	a.answers(requestOne, event.RequestProvisioned)
	settings := a.Settings()
	settings.Policy.ClusterQueues = slices.Clone(settings.Policy.ClusterQueues)
	settings.Policy.ClusterQueues[0].StopPolicy = quota.Hold
	a.ApplyConfiguration(settings.Queues, settings.Policy, a.Version()+1)
	a.step(0)
	a.tick()
	a.wantSent("forgotten " + requestOne)
	a.wantReason(workload.ReasonHeld, "")
	if p := a.gang().Provisioning; p.Open || p.Failures > 0 {
		t.Errorf("the request is %+v, want none, and no failure", p)
	}
}

// A new leader goes on with the turn of its predecessor.
func TestATurnOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	a := newShower(t)
	a.answers(requestOne, event.RequestProvisioned)
	a.replaceLeader()
	a.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: "other", Queue: "q", Namespace: "ns", Kind: "RayJob", Name: "other",
		PodSets: []workload.PodSet{podSet("workers", workload.RoleWorker, 1)},
	}}, nil, a.now)
	a.step(0)
	if p := a.live.Get("other").Provisioning; p != nil {
		t.Errorf("another gang shows itself beside it: %+v", p)
	}
	a.now = a.now.Add(10 * time.Minute)
	a.tick()
	if p := a.live.Get("other").Provisioning; p == nil || !p.Open {
		t.Errorf("when the turn is over the other gang has the request %+v, want its turn", p)
	}
}

// The next flavor has its turn when the time of the first one is over, as with requests.
func TestTheNextFlavorIsShownInItsTurn(t *testing.T) {
	t.Parallel()
	a := newFlavored(t)
	settings := a.Settings()
	settings.Policy.ProvisioningConfigs = []quota.ProvisioningConfig{{Name: "config", Class: workload.PlaceholderClass}}
	next := &asker{&stage{T: t, now: a.now, pods: map[string]event.GangPod{}}}
	next.State = New(1, Stored{MaxEvent: 1 << 20, Queues: settings.Queues, Policy: settings.Policy})
	next.node("full", func(n *capacity.Node) { n.Allocatable = resource.List{"cpu": 1, "pods": 10} })
	next.submit(workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}})
	next.wantFlavor("reserved")
	next.answers(requestOne, event.RequestProvisioned)
	next.now = next.now.Add(600 * time.Second) // provisionWithinSeconds, before the deadline
	next.tick()
	next.wantFlavor("spot")
}

// A cordon of a moment ends no turn: the five minutes count from the cordon.
func TestATurnEndsFiveMinutesAfterItsClusterIsBarred(t *testing.T) {
	t.Parallel()
	a := newShower(t)
	a.answers(requestOne, event.RequestProvisioned)
	a.now = a.now.Add(4*time.Minute + settleProvisioned/2)
	settings := a.Settings()
	settings.Policy.ClusterCordons = []quota.ClusterCordon{{Name: "c", Since: a.now, By: "ann"}}
	a.ApplyConfiguration(settings.Queues, settings.Policy, a.Version()+1)
	a.step(0)
	a.tick()
	a.wantSent()
	if p := a.gang().Provisioning; !p.Open {
		t.Fatalf("the request is %+v: a cordon of a moment ends a turn of more than five minutes", p)
	}
	a.now = a.now.Add(3 * time.Minute)
	a.tick()
	if p := a.gang().Provisioning; !p.Open {
		t.Fatalf("after three minutes the request is %+v", p)
	}
	a.now = a.now.Add(2 * time.Minute)
	a.tick()
	if p := a.gang().Provisioning; p.Open || p.Failures > 0 {
		t.Errorf("after five minutes the request is %+v, want none, and no failure", p)
	}
}
