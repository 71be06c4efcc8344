package state

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// newAskerWith is an asker whose quota is larger than its gang.
func newAskerWith(t *testing.T, cpus int64) *asker {
	t.Helper()
	a := newAsker(t)
	settings := a.Settings()
	settings.Policy.ClusterQueues = slices.Clone(settings.Policy.ClusterQueues)
	settings.Policy.ClusterQueues[0].ResourceGroups = []quota.ResourceGroup{{
		CoveredResources: []resource.Name{"cpu"},
		Flavors:          []quota.FlavorQuotas{{Name: "default", Resources: []quota.ResourceQuota{{Name: "cpu", Nominal: cpus}}}},
	}}
	a.ApplyConfiguration(settings.Queues, settings.Policy, a.version)
	a.step(0)
	return a
}

// submitOne submits a gang of one worker that fills a node.
func (a *asker) submitOne(id workload.ID) {
	a.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: id, Queue: "q", Namespace: "ns", Kind: "RayJob", Name: string(id),
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, a.now)
	a.step(0)
}

// What comes for a gang that has asked goes to no other one, under the next leader neither, until
// the gang is admitted or has waited for its places for too long.
func TestNodesThatComeAreKeptForTheGangThatAsked(t *testing.T) {
	t.Parallel()
	a := newAskerWith(t, 100)
	a.answers(requestOne, event.RequestProvisioned)
	a.node("n0", nil) // one of two
	a.step(0)
	a.submitOne("second")
	second := func() *entry { return a.live.Get("second") }
	if e := second(); e.Phase != workload.Queued || e.Reason.Kind != workload.ReasonBehindHead {
		t.Fatalf("the second gang is %s with %+v, want the place kept", e.Phase, e.Reason)
	}
	a.step(time.Minute)
	a.replaceLeader()
	if e := second(); e.Phase != workload.Queued {
		t.Errorf("under the next leader the second gang is %s", e.Phase)
	}
	a.step(settleProvisioned - time.Minute - time.Second)
	if e := second(); e.Phase != workload.Queued {
		t.Errorf("before the time is over the second gang is %s", e.Phase)
	}
	a.step(time.Second)
	a.step(0)
	if e := second(); e.Phase != workload.Admitted {
		t.Errorf("after the time the second gang is %s with %+v", e.Phase, e.Reason)
	}
}
