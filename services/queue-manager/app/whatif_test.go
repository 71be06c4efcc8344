package app_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// declared is a gang of workers only, which declares its run time.
func declared(name string, workers int, runs time.Duration) workload.Workload {
	gang := gangOf(name, "q", workers)
	gang.PodSets = gang.PodSets[1:]
	gang.Life.RunTime = workload.Duration(runs)
	return gang
}

// whatIf asks, and again while another question is answered.
func (w *world) whatIf(r query.WhatIfRequest) query.WhatIfAnswer {
	w.t.Helper()
	answer, err := w.queries.WhatIf(w.ctx, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// changed is what the answer says of a workload of that name.
func changed(t *testing.T, answer query.WhatIfAnswer, name string) query.WhatIfWorkload {
	t.Helper()
	i := slices.IndexFunc(answer.Workloads, func(w query.WhatIfWorkload) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("nothing is said of %s: %+v", name, answer)
	}
	return answer.Workloads[i]
}

// TestWhatIf: each kind of change is played on the live state, and changes nothing there.
func TestWhatIf(t *testing.T) {
	t.Parallel()
	w := estimatingWorld(t)
	w.node("n1", 4)
	w.node("n2", 4)
	first, other := w.runGang(declared("first", 4, time.Hour)), w.runGang(declared("other", 4, 2*time.Hour))
	second, third := w.submit(declared("second", 4, time.Hour)), w.submit(declared("third", 4, time.Hour))
	w.waits(second, workload.ReasonFit)
	w.waits(third, workload.ReasonFit)
	node := w.command(first, "present", 1).Placements[0].Node

	about := func(t *testing.T, what string, at, want time.Time) {
		t.Helper()
		if at.Sub(want).Abs() > 30*time.Second {
			t.Errorf("%s starts at %s, want about %s", what, at, want)
		}
	}
	now := time.Now()
	t.Run("more nodes", func(t *testing.T) {
		answer := w.whatIf(query.WhatIfRequest{AddNodes: []query.NodesLike{{Like: query.NodeName{Cluster: cluster, Name: "n1"}, Count: 1}}})
		one, two := changed(t, answer, "second"), changed(t, answer, "third")
		about(t, "second before", one.Before, now.Add(time.Hour))
		about(t, "second", one.After, now)
		about(t, "third", two.After, now.Add(time.Hour))
		if len(answer.Workloads) != 2 || answer.Same != 0 || answer.Version == 0 {
			t.Errorf("the answer is %+v", answer)
		}
	})
	t.Run("nodes of a shape", func(t *testing.T) {
		shape := func(gpus int64) query.WhatIfRequest {
			amounts := resource.List{"cpu": 1000 * 64, "memory": 1 << 40, "nvidia.com/gpu": gpus}
			return query.WhatIfRequest{AddNodes: []query.NodesLike{{Shape: &query.NodeShape{Allocatable: amounts}, Count: 2}}}
		}
		answer := w.whatIf(shape(4))
		about(t, "second", changed(t, answer, "second").After, now)
		about(t, "third", changed(t, answer, "third").After, now)
		if answer := w.whatIf(shape(0)); len(answer.Workloads) != 0 {
			t.Errorf("with nodes without accelerators there changes %+v", answer.Workloads)
		}
	})
	t.Run("a drained node", func(t *testing.T) {
		answer := w.whatIf(query.WhatIfRequest{Drain: []query.NodeName{{Cluster: cluster, Name: node}}})
		if got := changed(t, answer, "first"); !got.Evicted {
			t.Errorf("of first it says %+v, want that it is evicted", got)
		}
		about(t, "first", changed(t, answer, "first").After, now.Add(2*time.Hour))
		about(t, "second", changed(t, answer, "second").After, now.Add(3*time.Hour))
	})
	t.Run("a drained cluster", func(t *testing.T) {
		answer := w.whatIf(query.WhatIfRequest{DrainAll: []query.NodeSet{{Cluster: cluster}}})
		for _, name := range []string{"first", "other"} {
			if got := changed(t, answer, name); !got.Evicted || !got.After.IsZero() {
				t.Errorf("of %s it says %+v, want that it is evicted and starts no more", name, got)
			}
		}
	})
	t.Run("fewer pods", func(t *testing.T) {
		answer := w.whatIf(query.WhatIfRequest{
			AddNodes:  []query.NodesLike{{Like: query.NodeName{Cluster: cluster, Name: "n1"}, Count: 1}},
			Workloads: []query.WorkloadChange{{ID: second, Pods: []query.PodCount{{PodSet: "workers", Count: 2}}}, {ID: third, Pods: []query.PodCount{{PodSet: "workers", Count: 2}}}},
		})
		about(t, "second", changed(t, answer, "second").After, now)
		about(t, "third", changed(t, answer, "third").After, now)
	})
	t.Run("smaller pods", func(t *testing.T) {
		answer := w.whatIf(query.WhatIfRequest{
			AddNodes:  []query.NodesLike{{Like: query.NodeName{Cluster: cluster, Name: "n1"}, Count: 1}},
			Workloads: []query.WorkloadChange{{ID: third, Requests: []query.PodRequests{{PodSet: "workers", Amounts: resource.List{"nvidia.com/gpu": 0}}}}},
		})
		about(t, "second", changed(t, answer, "second").After, now)
		about(t, "third", changed(t, answer, "third").After, now)
	})
	t.Run("of other places", func(t *testing.T) {
		answer := w.whatIf(query.WhatIfRequest{Drain: []query.NodeName{{Cluster: cluster, Name: node}}, Within: []query.Place{{Queue: "q", Namespaces: []string{"b"}}}})
		if len(answer.Workloads) != 0 || answer.Others < 2 || answer.Same != 0 {
			t.Errorf("to those who see nothing it names %+v and counts %d others, and %d that start as before", answer.Workloads, answer.Others, answer.Same)
		}
	})
	t.Run("a priority", func(t *testing.T) {
		high := int32(10)
		answer := w.whatIf(query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: third, Priority: &high}}})
		about(t, "third", changed(t, answer, "third").After, now.Add(time.Hour))
		about(t, "second", changed(t, answer, "second").After, now.Add(2*time.Hour))
	})
	t.Run("a submission", func(t *testing.T) {
		small := declared("small", 1, time.Hour)
		small.Namespace = "a"
		answer := w.whatIf(query.WhatIfRequest{Submit: []query.WhatIfSubmission{{Workload: small}}})
		got := changed(t, answer, "small")
		if !got.Submitted || got.Refused != "" {
			t.Errorf("of small it says %+v", got)
		}
		about(t, "small", got.After, now.Add(2*time.Hour))
	})
	t.Run("a queues file", func(t *testing.T) {
		answer := w.whatIf(query.WhatIfRequest{QueuesFile: "queues:\n- name: q\n  namespaces: [a]\nclusterQueues:\n- name: q\n  resourceGroups:\n" +
			"  - coveredResources: [nvidia.com/gpu]\n    flavors:\n    - name: f\n      resources: [{name: nvidia.com/gpu, nominalQuota: 1}]\nresourceFlavors: [{name: f}]\n"})
		if got := changed(t, answer, "second"); !got.After.IsZero() {
			t.Errorf("without quota second starts at %s", got.After)
		}
	})
	for name, c := range map[string]struct {
		r    query.WhatIfRequest
		want string
	}{
		"no such node":           {query.WhatIfRequest{Drain: []query.NodeName{{Cluster: cluster, Name: "n9"}}}, `there is no node "n9" in cluster "test"`},
		"no node to be like":     {query.WhatIfRequest{AddNodes: []query.NodesLike{{Like: query.NodeName{Name: "x"}, Count: 1}}}, `there is no node "x"`},
		"no such cluster":        {query.WhatIfRequest{AddNodes: []query.NodesLike{{Shape: &query.NodeShape{Cluster: "x", Allocatable: resource.List{"cpu": 1}}, Count: 1}}}, `cluster "x" of the added nodes: want one of test`},
		"an empty shape":         {query.WhatIfRequest{AddNodes: []query.NodesLike{{Shape: &query.NodeShape{}, Count: 1}}}, "addNodes[0].shape: 0 resources"},
		"too many nodes":         {query.WhatIfRequest{AddNodes: []query.NodesLike{{Count: 1 << 40}}}, "want 1 to 10000"},
		"too many pods":          {query.WhatIfRequest{Submit: []query.WhatIfSubmission{{Workload: gangOf("x", "q", 1<<30)}}}, `pod set "workers" has 1073741824 pods; want 0 to 10000`},
		"no such set of nodes":   {query.WhatIfRequest{DrainAll: []query.NodeSet{{Label: "rack", Value: "r9"}}}, `with label "rack" of value "r9"`},
		"a set of all nodes":     {query.WhatIfRequest{DrainAll: []query.NodeSet{{}}}, "want a cluster or a label"},
		"no such pod set":        {query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: second, Pods: []query.PodCount{{PodSet: "w", Count: 1}}}}}, `has no pod set "w"`},
		"requests of no pod set": {query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: second, Requests: []query.PodRequests{{PodSet: "w", Amounts: resource.List{"cpu": 1}}}}}}, `has no pod set "w"`},
		"a negative request":     {query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: second, Requests: []query.PodRequests{{PodSet: "workers", Amounts: resource.List{"cpu": -1}}}}}}, `requests of pod set "workers": "cpu" of -1`},
		"no requests":            {query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: second, Requests: []query.PodRequests{{PodSet: "workers"}}}}}, "0 resources: want 1 to 64"},
		"too many pods of a set": {query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: second, Pods: []query.PodCount{{PodSet: "workers", Count: 1 << 30}}}}}, "want 0 to 10000"},
		"one that runs":          {query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: other, Queue: "q"}}}, "does not wait"},
		"no such queue":          {query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: second, Queue: "nope"}}}, `workload a/second: there would be no queue "nope"`},
		"a queue that goes":      {query.WhatIfRequest{QueuesFile: "queues:\n- {name: other, namespaces: [a]}\n"}, `there would be no queue "q"`},
		"no queues file":         {query.WhatIfRequest{QueuesFile: "queues: 7"}, "queues file: "},
		"too large a file":       {query.WhatIfRequest{QueuesFile: strings.Repeat("#", 1<<19+1)}, "want at most 524288"},
		"too many of a kind":     {query.WhatIfRequest{Drain: make([]query.NodeName, 101)}, "drain: 101 entries; want at most 100"},
		"nodes in sum":           {query.WhatIfRequest{AddNodes: []query.NodesLike{{Count: 9000}, {Count: 9000}}}, "18000 nodes in sum"},
		"a negative pod set":     {query.WhatIfRequest{Submit: []query.WhatIfSubmission{{Workload: gangOf("x", "q", -1)}}}, "has -1 pods"},
		"a request of amount":    {query.WhatIfRequest{Submit: []query.WhatIfSubmission{{Workload: workload.Workload{ID: "x", Queue: "q", PodSets: []workload.PodSet{{Name: "p", Count: 1, Template: workload.Template{Requests: resource.List{"cpu": -1}}}}}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := w.queries.WhatIf(w.ctx, c.r)
			if c.want == "" { // no error, or one: no panic
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want the error %q", answer, err, c.want)
			}
		})
	}
	all, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{})
	if err != nil || len(all.Workloads) != 4 || all.Workloads[2].Phase != workload.Queued || all.Workloads[3].Priority != 0 || all.Workloads[0].Phase != workload.Running {
		t.Errorf("afterwards there is %+v, %v; want what was before", all.Workloads, err)
	}
}

// TestWhatIfQueuesWereApplied: Kueue's manifests are tried as if they were applied, beside
// what was.
func TestWhatIfQueuesWereApplied(t *testing.T) {
	t.Parallel()
	w := estimatingWorld(t)
	w.node("n1", 4)
	w.apply(oneQueue)
	first, waiting := declared("first", 1, time.Hour), declared("second", 1, time.Hour)
	first.Queue, first.Namespace = "user-queue", "team-a"
	waiting.Queue, waiting.Namespace = "user-queue", "team-a"
	w.runGang(first)
	second := w.submit(waiting)
	w.waits(second, workload.ReasonQuota)

	another := "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {namespace: team-b, name: user-queue}\nspec: {clusterQueue: cluster-queue}\n"
	answer := w.whatIf(query.WhatIfRequest{QueuesFile: strings.Replace(oneQueue, "nominalQuota: 1", "nominalQuota: 2", 1) + another})
	if got := changed(t, answer, "second"); got.After.IsZero() || time.Until(got.After) > time.Minute {
		t.Errorf("with more quota second starts at %s, want now", got.After)
	}
	if same := w.whatIf(query.WhatIfRequest{QueuesFile: another[4:]}); len(same.Workloads) != 0 {
		t.Errorf("with another queue alone there changes %+v", same.Workloads)
	}
}

// TestWhatIfAMoveIsRefused: a move that queue-manager would refuse is refused here, with the
// same words.
func TestWhatIfAMoveIsRefused(t *testing.T) {
	t.Parallel()
	w := estimatingWorld(t)
	w.node("n1", 4)
	w.apply(oneQueue)
	w.runGang(declared("first", 4, time.Hour))
	waiting := w.submit(declared("second", 4, time.Hour))
	w.waits(waiting, workload.ReasonFit)
	_, err := w.queries.WhatIf(w.ctx, query.WhatIfRequest{Workloads: []query.WorkloadChange{{ID: waiting, Queue: "user-queue"}}})
	if want := `not moved: namespace "a" does not belong to queue "user-queue"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the move gives %v, want %q", err, want)
	}
}
