package forecast

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/replay"
)

// preempting has a ClusterQueue in which a higher priority evicts a lower one.
const preempting = `
queues: [{name: q, namespaces: [n], submitters: [{who: [http/ann]}]}]
workloadPriorityClasses: [{name: urgent, value: 20}]
resourceFlavors: [{name: f}]
clusterQueues:
- name: q
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: 100}]}]
`

// contended has four GPUs: "low" holds two for ten hours and "peer" two for one. "high" waits for
// all four, and evicts "low" when "peer" has ended.
func contended(t *testing.T, now time.Time) estimate.Snapshot {
	t.Helper()
	settings, err := replay.ReadPolicy([]byte(preempting))
	if err != nil {
		t.Fatal(err)
	}
	gang := func(id workload.ID, pods int, priority int32, runs time.Duration) workload.Record {
		w := workload.Workload{ID: id, Queue: "q", Namespace: "n", Kind: workload.KindRayCluster, Name: string(id), Priority: priority, PodSets: []workload.PodSet{{
			Name: "w", Role: workload.RoleWorker, Count: pods, Template: workload.Template{Requests: resource.List{"nvidia.com/gpu": 1, resource.Pods: 1}},
		}}}
		w.Life.RunTime = workload.Duration(runs)
		return workload.Record{Workload: w, Phase: workload.Queued, Attempt: 1, Times: workload.Times{Submitted: now.Add(-time.Hour)}}
	}
	runs := func(r workload.Record) workload.Record {
		r.Phase, r.Cluster, r.Holding = workload.Running, "c", true
		r.Placements = []workload.Placement{{PodSet: "w", Node: "node", Pods: 2}}
		r.Flavors = []workload.PodSetFlavors{{PodSet: "w", Flavors: map[resource.Name]string{"nvidia.com/gpu": "f"}}}
		r.Times.Admitted, r.Times.Dispatched, r.Times.Running = now, now, now
		return r
	}
	return estimate.Snapshot{
		Now: now, Queues: settings.Queues, Policy: settings.Policy,
		Nodes:   []capacity.Node{{Cluster: "c", Name: "node", Ready: true, Allocatable: resource.List{"nvidia.com/gpu": 4, resource.Pods: 10}}},
		Running: []workload.Record{runs(gang("low", 2, 0, 10*time.Hour)), runs(gang("peer", 2, 10, time.Hour))},
		Waiting: []workload.Record{gang("high", 4, 10, 2*time.Hour)},
	}
}

// TestAPriorityOfOneThatRuns: a running workload with a higher priority is not evicted any more,
// and one that would evict it waits for its end.
func TestAPriorityOfOneThatRuns(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	play := func(s estimate.Snapshot) estimate.Forecast {
		t.Helper()
		forecast, err := estimate.FastForward(s, &estimate.History{}, estimate.Bounds{Ends: mostEnds, Horizon: horizon})
		if err != nil {
			t.Fatal(err)
		}
		return forecast
	}
	before, after := contended(t, now), contended(t, now)
	raised := int32(10)
	if err := edit(&after, query.WorkloadChange{ID: "low", Priority: &raised}); err != nil {
		t.Fatal(err)
	}
	at := map[string]query.WhatIfWorkload{}
	for _, w := range compare(before, after, play(before), play(after)).Workloads {
		at[w.Name] = w
	}
	if high := at["high"]; !high.Before.Equal(now.Add(time.Hour)) || !high.After.Equal(now.Add(10*time.Hour)) {
		t.Errorf("high starts at %s without and at %s with the change; want after one hour and after ten", high.Before, high.After)
	}
	if low := at["low"]; !low.Spared || low.Evicted || !low.Before.Equal(now.Add(3*time.Hour)) || !low.After.IsZero() {
		t.Errorf("of low it says %+v, want that it is spared, and would start again after three hours", low)
	}
	if back := compare(after, before, play(after), play(before)).Workloads; len(back) != 2 || !back[0].Evicted && !back[1].Evicted {
		t.Errorf("the other way round it says %+v, want that one is evicted", back)
	}
}

// TestWhatIsSubmittedIsJudgedAsASubmission: it has the priority of its class, and the rights of the
// caller.
func TestWhatIsSubmittedIsJudgedAsASubmission(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		class, submitter, caller string
		starts                   time.Duration
		refused                  string
	}{
		"without a class":     {"", "", "http/ann", 3 * time.Hour, ""},
		"with a class":        {"urgent", "", "http/ann", time.Hour, ""}, // when peer has ended
		"of another's name":   {"", "http/ann", "http/olga", 3 * time.Hour, ""},
		"of an unknown class": {"later", "", "http/ann", 0, "later"},
		"without the right":   {"", "", "http/olga", 0, "does not admit this submitter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := contended(t, now)
			gang := before.Waiting[0].Workload
			gang.ID, gang.Name, gang.Namespace, gang.Priority, gang.Submitter = "new", "new", "", 0, c.submitter
			gang.PodSets = slices.Clone(gang.PodSets)
			gang.PodSets[0].Count = 2
			after, err := (&Forecaster{}).change(t.Context(), before, query.WhatIfRequest{Submit: []query.WhatIfSubmission{{Workload: gang, PriorityClass: c.class}}, For: c.caller})
			if err != nil {
				t.Fatal(err)
			}
			with, err := estimate.FastForward(after, &estimate.History{}, estimate.Bounds{Ends: mostEnds, Horizon: horizon})
			if err != nil {
				t.Fatal(err)
			}
			answer := within(compare(before, after, estimate.Forecast{}, with), after.Waiting, []query.Place{{Queue: "q", Namespaces: []string{"n"}}})
			i := slices.IndexFunc(answer.Workloads, func(w query.WhatIfWorkload) bool { return w.Submitted })
			if i < 0 {
				t.Fatalf("nothing is said of it: %+v", answer)
			}
			got := answer.Workloads[i]
			if !strings.Contains(got.Refused, c.refused) || (c.refused == "") != got.After.Equal(now.Add(c.starts)) {
				t.Errorf("of it it says %+v, want that it starts after %s, or the refusal %q", got, c.starts, c.refused)
			}
		})
	}
}

// TestATenantSeesNothingOfOthers: of an answer a tenant gets what is of its places, and no count of
// those of others that wait as before, or were left out.
func TestATenantSeesNothingOfOthers(t *testing.T) {
	t.Parallel()
	of := func(id workload.ID, queue string) workload.Record {
		return workload.Record{Workload: workload.Workload{ID: id, Queue: queue, Namespace: "n", Name: string(id)}}
	}
	waiting := []workload.Record{of("mine", "a"), of("mine-too", "a"), of("theirs", "b"), of("theirs-too", "b"), of("theirs-three", "b")}
	answer := query.WhatIfAnswer{Same: 3, LeftOut: 40_000, Workloads: []query.WhatIfWorkload{
		{ID: "mine", Queue: "a", Namespace: "n"}, {ID: "theirs", Queue: "b", Namespace: "n"},
	}}
	for name, c := range map[string]struct {
		places []query.Place
		want   query.WhatIfAnswer
	}{
		"an operator": {nil, answer},
		"a tenant": {[]query.Place{{Queue: "a", Namespaces: []string{"n"}}}, query.WhatIfAnswer{
			Same: 1, Others: 1, Cut: true, Workloads: []query.WhatIfWorkload{{ID: "mine", Queue: "a", Namespace: "n"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := answer
			given.Workloads = slices.Clone(answer.Workloads)
			if diff := cmp.Diff(c.want, within(given, waiting, c.places)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOfOneThatRunsOnlyThePriorityChanges: other changes are refused, and change nothing.
func TestOfOneThatRunsOnlyThePriorityChanges(t *testing.T) {
	t.Parallel()
	now, raised := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), int32(10)
	for name, change := range map[string]query.WorkloadChange{
		"a queue":        {ID: "low", Priority: &raised, Queue: "q"},
		"pods":           {ID: "low", Priority: &raised, Pods: []query.PodCount{{PodSet: "w", Count: 1}}},
		"nothing":        {ID: "low"},
		"an unknown one": {ID: "none", Priority: &raised},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := contended(t, now)
			if err := edit(&s, change); err == nil || !strings.Contains(err.Error(), "does not wait") {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(contended(t, now).Running, s.Running); diff != "" {
				t.Error(diff)
			}
		})
	}
}
