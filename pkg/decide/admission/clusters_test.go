package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

func priced(name string, gpu int64, labels map[string]string) quota.Cluster {
	return quota.Cluster{Name: name, Labels: labels, Cost: quota.Cost{"nvidia.com/gpu": gpu}}
}

// wanting enqueues a gang of pods with a number of GPUs each, which selects clusters.
func wanting(s *admission.State, id workload.ID, order int64, selector string, pods int, gpus int64) {
	set := setOf("workers", pods, 1, gpus)
	set.Clusters = workload.ClusterSelector(selector)
	s.Enqueue(admission.Waiting{Order: order, Workload: &workload.Workload{ID: id, Queue: "queue", PodSets: []workload.PodSet{set}}})
}

func cordon(name string, drain bool) quota.ClusterCordon {
	return quota.ClusterCordon{Name: name, Since: start, By: "ann", Why: "new racks", Drain: drain}
}

// The order of the choice is that of the design: allowed, then fits now, then cost, then
// least fragmentation. TestAGangGoesToThePreferredOfRandomClusters has preference, before cost.
func TestTheChoiceOfTheCluster(t *testing.T) {
	t.Parallel()
	eu, us := map[string]string{"region": "eu"}, map[string]string{"region": "us"}
	for name, c := range map[string]struct {
		clusters []quota.Cluster
		cordons  []quota.ClusterCordon
		silent   map[string]time.Time
		nodes    []capacity.Node
		selector string
		want     string // the cluster, or a part of the reason
	}{
		"the cheapest": {
			clusters: []quota.Cluster{priced("a", 3000, nil), priced("b", 2000, nil), priced("c", 2500, nil)},
			nodes:    []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 4), nodeIn("c", "c1", 4)}, want: "b",
		},
		"one without a description is free": {
			clusters: []quota.Cluster{priced("a", 1, nil)},
			nodes:    []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 4)}, want: "b",
		},
		"a dear one with room before a cheap one without": {
			clusters: []quota.Cluster{priced("a", 1, nil), priced("b", 9000, nil)},
			nodes:    []capacity.Node{nodeIn("a", "a1", 1), nodeIn("b", "b1", 4)}, want: "b",
		},
		"equally cheap: the one that is fragmented least": { // b has a hole of just two
			nodes: []capacity.Node{nodeIn("a", "a1", 8), nodeIn("b", "b1", 2)}, want: "b",
		},
		"the selected one": {
			clusters: []quota.Cluster{priced("a", 1, eu), priced("b", 2, us)}, selector: "region=us",
			nodes: []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 4)}, want: "b",
		},
		"by name": {
			selector: "muster.dev/cluster=b", nodes: []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 4)}, want: "b",
		},
		"none is selected": {
			selector: "region=asia", clusters: []quota.Cluster{priced("a", 1, eu)}, nodes: []capacity.Node{nodeIn("a", "a1", 4)},
			want: `no cluster takes it now: cluster "a" is not selected by "region=asia"`,
		},
		"one for other queues": {
			clusters: []quota.Cluster{{Name: "a", Queues: []string{"others"}}}, nodes: []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 8)}, want: "b",
		},
		"none for the queue": {
			clusters: []quota.Cluster{{Name: "a", Queues: []string{"others"}}}, nodes: []capacity.Node{nodeIn("a", "a1", 4)},
			want: `no cluster takes it now: no cluster with nodes takes gangs of ClusterQueue "queue"`,
		},
		"one for other queues, and a full one": {
			clusters: []quota.Cluster{{Name: "a", Queues: []string{"others"}}}, nodes: []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 1)},
			want: `each pod of pod set "workers" requests nvidia.com/gpu 2, and the largest node that takes it offers 1 when empty; it waits until a node is added or changed. ` +
				`Now: 1 of 1 pods of pod set "workers" do not fit: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Each pod requests nvidia.com/gpu 2; ` +
				`free: 1 on the best node, 1 in sum over 1 eligible nodes`,
		},
		"one for other queues, and a cordoned one": {
			clusters: []quota.Cluster{{Name: "a", Queues: []string{"others"}}}, cordons: []quota.ClusterCordon{cordon("b", false)},
			nodes: []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 4)},
			want:  `no cluster takes it now: cluster "b" is cordoned since 1970-01-12T13:46:40Z by ann: new racks`,
		},
		"none in a cordoned one": {
			cordons: []quota.ClusterCordon{cordon("a", false)}, nodes: []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 8)}, want: "b",
		},
		"all are cordoned": {
			cordons: []quota.ClusterCordon{cordon("a", false)}, nodes: []capacity.Node{nodeIn("a", "a1", 4)},
			want: `no cluster takes it now: cluster "a" is cordoned since 1970-01-12T13:46:40Z by ann: new racks`,
		},
		"one is cordoned and the other full": {
			cordons: []quota.ClusterCordon{cordon("a", false)}, nodes: []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 1)},
			want: `1 of 1 pods of pod set "workers" do not fit: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Each pod requests nvidia.com/gpu 2; ` +
				`free: 1 on the best node, 1 in sum over 1 eligible nodes; not counted: cluster "a" is cordoned since 1970-01-12T13:46:40Z by ann: new racks`,
		},
		"none in a silent one": {
			silent: map[string]time.Time{"a": start}, nodes: []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 8)}, want: "b",
		},
		"all are silent": {
			silent: map[string]time.Time{"a": start}, nodes: []capacity.Node{nodeIn("a", "a1", 4)},
			want: `no cluster takes it now: cluster "a" has not reported since 1970-01-12T13:46:40Z`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, quota.Config{Clusters: c.clusters, ClusterCordons: c.cordons}))
			for _, n := range c.nodes {
				s.SetNode(n)
			}
			s.SetSilent(c.silent)
			wanting(s, "gang", 0, c.selector, 1, 2)
			got, is := admitted(decide(s))["gang"]
			switch {
			case is && got != c.want:
				t.Errorf("it starts in cluster %s, want %s", got, c.want)
			case !is && reasonText(s, "gang") != c.want:
				t.Errorf("it waits: %s; want %s", reasonText(s, "gang"), c.want)
			}
		})
	}
}

// A tenant reads nothing of the clusters that are kept for the queues of others: not in reasons,
// which events have, and not in its explanation. Operators do. Of the cluster where its object
// is, a tenant knows.
func TestATenantLearnsNothingOfTheClustersOfOthers(t *testing.T) {
	t.Parallel()
	others := []string{"others"}
	s := admission.NewState(treeOf(t, quota.Config{Clusters: []quota.Cluster{
		{Name: "secret-a", Queues: others}, {Name: "secret-b", Queues: others}, {Name: "secret-c", Queues: others},
	}, ClusterCordons: []quota.ClusterCordon{cordon("secret-b", true)}}))
	for _, n := range []capacity.Node{nodeIn("secret-a", "a1", 4), nodeIn("secret-b", "b1", 4), nodeIn("secret-c", "c1", 4), nodeIn("open", "o1", 1)} {
		s.SetNode(n)
	}
	s.SetSilent(map[string]time.Time{"secret-c": start})
	wanting(s, "gang", 0, "", 1, 2)
	wanting(s, "selects", 1, "tier=spot", 1, 2)
	decide(s)
	for id, want := range map[workload.ID]string{"gang": "1 eligible nodes", "selects": `"open" is not selected`} {
		t.Run(string(id), func(t *testing.T) {
			e, waits := admission.Explain(s, id, start)
			if text := reasonText(s, id); !waits || !strings.Contains(text, want) || strings.Contains(text, "secret") {
				t.Errorf("the reason is %q, want %q and no cluster of others", text, want)
			}
			if len(e.Clusters) != 4 {
				t.Errorf("operators read of %+v, want all four", e.Clusters)
			}
			if seen := e.ForTenant().Clusters; len(seen) != 1 || seen[0].Cluster != "open" {
				t.Errorf("the tenant reads of %+v, want its own alone", seen)
			}
		})
	}
}

func reasonText(s *admission.State, id workload.ID) string { return s.Reason(id).Message }

// A gang that waits for a cordoned or silent cluster starts when that is over, and the
// explanation has a reason for each cluster.
func TestAClusterTakesGangsAgain(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{ClusterCordons: []quota.ClusterCordon{cordon("a", false)}}))
	for _, n := range []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 4), nodeIn("c", "c1", 1)} {
		s.SetNode(n)
	}
	s.SetSilent(map[string]time.Time{"b": start})
	wanting(s, "gang", 0, "", 1, 2)
	if got := admitted(decide(s)); len(got) > 0 {
		t.Fatalf("admitted are %v, want none", got)
	}
	e, _ := admission.Explain(s, "gang", start)
	var why []string
	for _, c := range e.Clusters {
		why = append(why, fmt.Sprintf("%s %v %s", c.Cluster, c.Open, c.Message))
	}
	if len(why) != 3 || !strings.HasPrefix(why[0], "a false cluster \"a\" is cordoned") || !strings.HasPrefix(why[1], "b false cluster \"b\" has not reported") ||
		!strings.HasPrefix(why[2], "c true") || !strings.Contains(why[2], "Insufficient nvidia.com/gpu") {
		t.Errorf("the clusters are explained by %q", why)
	}
	s.SetSilent(nil)
	if !s.Pending(start) {
		t.Fatal("nothing is to be decided when a cluster reports again")
	}
	if got := admitted(decide(s)); got["gang"] != "b" {
		t.Errorf("when b reports again admitted are %v, want gang in b", got)
	}
	wanting(s, "other", 1, "", 1, 4)
	decide(s)
	s.Reconfigure(treeOf(t, quota.Config{}))
	if got := admitted(decide(s)); got["other"] != "a" {
		t.Errorf("when a is uncordoned admitted are %v, want other in a", got)
	}
}

// A drained cluster is emptied in the order of priorities, and its gangs start elsewhere in
// that order when their pods are gone.
func TestDrainEvictsByPriority(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{}))
	s.SetNode(nodeIn("a", "a1", 8))
	for i, priority := range []int32{1, 3, 2} {
		w := &workload.Workload{ID: workload.ID(fmt.Sprintf("p%d", priority)), Queue: "queue", Priority: priority, PodSets: []workload.PodSet{setOf("workers", 1, 1, 2)}}
		s.Enqueue(admission.Waiting{Order: int64(i), Workload: w})
	}
	if got := admitted(decide(s)); len(got) != 3 {
		t.Fatalf("admitted are %v, want three", got)
	}
	s.Reconfigure(treeOf(t, quota.Config{ClusterCordons: []quota.ClusterCordon{cordon("a", true)}}))
	if !s.Pending(start) {
		t.Fatal("nothing is to be decided in a drained cluster")
	}
	var evicted []workload.ID
	for _, e := range decide(s).Evictions {
		evicted = append(evicted, e.Workload)
		if e.Reason.Kind != workload.ReasonDrained || !strings.Contains(e.Reason.Message, `cluster "a" is drained`) {
			t.Errorf("%s is evicted because of %+v", e.Workload, e.Reason)
		}
	}
	if want := []workload.ID{"p3", "p2", "p1"}; !slices.Equal(evicted, want) {
		t.Errorf("evicted are %v, want %v", evicted, want)
	}
	if s.Pending(start) {
		t.Error("it is to be drained again")
	}
}

// A nomination for places in a cluster ends when the cluster is cordoned or becomes silent:
// the gang takes others, and what its victims leave is free.
func TestACordonEndsANomination(t *testing.T) {
	t.Parallel()
	t.Run("silent", func(t *testing.T) {
		nominationEnds(t, func(s *admission.State, _ quota.ClusterQueue) { s.SetSilent(map[string]time.Time{"a": start}) })
	})
	t.Run("cordoned", func(t *testing.T) {
		nominationEnds(t, func(s *admission.State, queue quota.ClusterQueue) {
			s.Reconfigure(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{queue}, ClusterCordons: []quota.ClusterCordon{cordon("a", false)}}))
		})
	})
}

func nominationEnds(t *testing.T, shut func(*admission.State, quota.ClusterQueue)) {
	t.Helper()
	queue := quota.ClusterQueue{Name: "queue", Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority}}
	s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{queue}}))
	s.SetNode(nodeIn("a", "a1", 2))
	wanting(s, "low", 0, "", 1, 2)
	decide(s)
	w := &workload.Workload{ID: "high", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 1, 1, 2)}}
	s.Enqueue(admission.Waiting{Order: 1, Workload: w})
	later := start.Add(time.Minute)
	if plan := admission.Decide(s, later); len(plan.Evictions) != 1 {
		t.Fatalf("evictions are %v, want low's", plan.Evictions)
	}
	s.SetNode(nodeIn("b", "b1", 2))
	shut(s, queue)
	if got := admitted(admission.Decide(s, later)); got["high"] != "b" {
		t.Errorf("admitted are %v, want high in b; it waits because of %s", got, reasonText(s, "high"))
	}
}

// Silence of all clusters ends no nomination, also where a term begins with it: no other gang can
// start meanwhile, and when the cluster reports again the gang has what its victims leave. A gang
// of a higher priority that came in the silence does not take it.
func TestANominationOutlastsTheSilenceOfAllClusters(t *testing.T) {
	t.Parallel()
	later, silent := start.Add(time.Minute), map[string]time.Time{"a": start}
	queue := quota.ClusterQueue{Name: "queue", Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority}}
	gang := func(id workload.ID, priority int32) *workload.Workload {
		return &workload.Workload{ID: id, Queue: "queue", Priority: priority, PodSets: []workload.PodSet{setOf("workers", 1, 1, 2)}}
	}
	for name, c := range map[string]struct{ anotherTerm, reported bool }{
		"in a term": {false, true}, "over terms": {true, true}, "over terms, and enqueued once more": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{queue}}))
			s.SetNode(nodeIn("a", "a1", 2))
			wanting(s, "low", 0, "", 1, 2)
			decide(s)
			s.Enqueue(admission.Waiting{Order: 1, Workload: gang("high", 5)})
			plan := admission.Decide(s, later)
			if len(plan.Evictions) != 1 || len(plan.Waits) != 1 {
				t.Fatalf("the plan is %+v, want low evicted for high", plan)
			}
			if c.anotherTerm {
				began := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{queue}}))
				began.SetNode(nodeIn("a", "a1", 2))
				began.Start(admission.Started{
					Workload: gang("low", 0), Cluster: "a", Terminating: true, Admitted: start,
					Placements: []workload.Placement{{PodSet: "workers", Node: "a1", Pods: 1}},
				})
				began.Enqueue(admission.Waiting{Order: 1, Workload: gang("high", 5), Nominated: true, Reported: c.reported})
				s = began
			}
			s.SetSilent(silent)
			s.Enqueue(admission.Waiting{Order: 2, Workload: gang("higher", 9)})
			for _, w := range admission.Decide(s, later).Waits {
				if w.Workload == "high" {
					t.Errorf("high waits in the silence because of %+v, want no other reason", w.Reason)
				}
			}
			s.SetSilent(nil)
			admission.Decide(s, later)
			s.Release("low")
			if got := admitted(admission.Decide(s, later)); got["high"] != "a" || len(got) != 1 {
				t.Errorf("admitted are %v, want high alone", got)
			}
		})
	}
}

// Silence keeps no nomination in a cluster that takes the gang no more, whether it reports or not.
func TestANominationEndsInTheSilenceOfAClosedCluster(t *testing.T) {
	t.Parallel()
	later := start.Add(time.Minute)
	queue := quota.ClusterQueue{Name: "queue", Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority}}
	for name, closed := range map[string]quota.Config{
		"cordoned":         {ClusterCordons: []quota.ClusterCordon{cordon("a", false)}},
		"of another queue": {Clusters: []quota.Cluster{{Name: "a", Queues: []string{"other"}}}},
		"still open":       {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{queue}}))
			s.SetNode(nodeIn("a", "a1", 2))
			wanting(s, "low", 0, "", 1, 2)
			decide(s)
			s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{ID: "high", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 1, 1, 2)}}})
			if plan := admission.Decide(s, later); len(plan.Evictions) != 1 {
				t.Fatalf("evictions are %v, want low's", plan.Evictions)
			}
			s.SetSilent(map[string]time.Time{"a": start})
			closed.ClusterQueues = []quota.ClusterQueue{queue}
			s.Reconfigure(treeOf(t, closed))
			admission.Decide(s, later)
			if waits := s.Reason("high").Kind == workload.ReasonWaitingForEviction; waits != (name == "still open") {
				t.Errorf("high waits because of %+v", s.Reason("high"))
			}
			next := admission.NewState(treeOf(t, closed))
			next.SetNode(nodeIn("a", "a1", 2))
			next.SetSilent(map[string]time.Time{"a": start})
			next.Enqueue(admission.Waiting{Order: 1, Nominated: true, Reported: true, Workload: &workload.Workload{ID: "high", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 1, 1, 2)}}})
			if waits := admission.Decide(next, later).Waits; (len(waits) == 0) != (name == "still open") {
				t.Errorf("in the next term the reasons are %+v", waits)
			}
		})
	}
}

// Silence keeps no nomination of an earlier term where no cluster offers a flavor of the gang's queue.
func TestANominationEndsInTheSilenceOfAClusterWithoutItsFlavor(t *testing.T) {
	t.Parallel()
	for offered, kept := range map[string]bool{"spot": true, "reserved": false} {
		t.Run(offered, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, flavored([]quota.Cluster{offers("a", 1, offered)}, 8, "spot")))
			s.SetNode(nodeIn("a", "a1", 2))
			s.SetSilent(map[string]time.Time{"a": start})
			s.Enqueue(admission.Waiting{Order: 1, Nominated: true, Reported: true, Workload: &workload.Workload{ID: "high", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 1, 1, 2)}}})
			if waits := admission.Decide(s, start.Add(time.Minute)).Waits; (len(waits) == 0) != kept {
				t.Errorf("the reasons are %+v, and the nomination is to be kept: %t", waits, kept)
			}
		})
	}
}
