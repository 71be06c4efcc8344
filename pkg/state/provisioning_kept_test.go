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

// addPlainQueue adds a queue without a check.
func (a *asker) addPlainQueue() {
	settings := a.Settings()
	policy, queue := settings.Policy, settings.Queues[0]
	plain := policy.ClusterQueues[0]
	plain.Name, plain.AdmissionChecks, queue.Name = "plain", nil, "plain"
	policy.ClusterQueues = append(slices.Clone(policy.ClusterQueues), plain)
	policy.LocalQueues = append(slices.Clone(policy.LocalQueues), quota.LocalQueue{Namespace: "ns", Name: "plain", ClusterQueue: "plain"})
	a.ApplyConfiguration(append(slices.Clone(settings.Queues), queue), policy, a.version)
	a.step(0)
}

// wantKept wants a workload to wait for places that are kept for another.
func (a *asker) wantKept(id workload.ID) {
	a.Helper()
	if e := a.live.Get(id); e.Phase != workload.Queued || e.Reason.Kind != workload.ReasonBehindHead {
		a.Errorf("%s is %s with %+v, want the place kept", id, e.Phase, e.Reason)
	}
}

// submitOne submits a gang of one worker that fills a node to the queue without a check.
func (a *asker) submitOne(id workload.ID) {
	a.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: id, Queue: "plain", Namespace: "ns", Kind: "RayJob", Name: string(id),
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, a.now)
	a.step(0)
}

// What comes for a gang that has asked goes to no other one, under the next leader neither, until
// the gang is admitted or has waited for its places for too long.
func TestNodesThatComeAreKeptForTheGangThatAsked(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.addPlainQueue()
	a.answers(requestOne, event.RequestProvisioned)
	a.node("n0", nil) // one of two
	a.step(0)
	a.submitOne("second")
	second := func() *entry { return a.live.Get("second") }
	a.wantKept("second")
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
