package admission_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// offers describes a cluster with its price of a GPU and the flavors that it offers.
func offers(name string, gpu int64, flavors ...string) quota.Cluster {
	c := priced(name, gpu, nil)
	c.Flavors = flavors
	return c
}

// flavored is a policy of one queue with quota of GPUs by flavors, in this order.
func flavored(clusters []quota.Cluster, nominal int64, flavors ...string) quota.Config {
	c := quota.Config{Clusters: clusters}
	group := quota.ResourceGroup{CoveredResources: []resource.Name{"nvidia.com/gpu"}}
	for _, name := range flavors {
		c.Flavors = append(c.Flavors, quota.Flavor{Name: name})
		group.Flavors = append(group.Flavors, quota.FlavorQuotas{Name: name, Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: nominal}}})
	}
	c.ClusterQueues = []quota.ClusterQueue{{
		Name: "queue", QuotaCheckStrategy: quota.IgnoreUndeclared, ResourceGroups: []quota.ResourceGroup{group},
		Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority},
	}}
	return c
}

// A gang starts where its flavor is offered, however cheap the others are, or waits; its reason
// and its explanation name the flavor for each cluster.
func TestAGangStartsWhereItsFlavorIsOffered(t *testing.T) {
	t.Parallel()
	both := []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 4)}
	for name, c := range map[string]struct {
		clusters []quota.Cluster
		flavors  []string
		nodes    []capacity.Node
		want     string // the cluster and the flavor, or a part of the reason
	}{
		"only one offers it":         {[]quota.Cluster{offers("a", 1, "reserved"), offers("b", 9, "spot")}, []string{"spot"}, both, "b spot"},
		"one states none":            {[]quota.Cluster{offers("a", 1, "reserved"), offers("b", 9)}, []string{"spot"}, both, "b spot"},
		"one is not described":       {[]quota.Cluster{offers("a", 0, "reserved")}, []string{"spot"}, both, "b spot"},
		"the first flavor goes":      {[]quota.Cluster{offers("a", 9, "reserved"), offers("b", 1, "spot")}, []string{"reserved", "spot"}, both, "a reserved"},
		"the first is not offered":   {[]quota.Cluster{offers("a", 1, "other"), offers("b", 9, "spot")}, []string{"reserved", "spot"}, both, "b spot"},
		"the first is full":          {[]quota.Cluster{offers("a", 1, "reserved"), offers("b", 9, "spot")}, []string{"reserved", "spot"}, []capacity.Node{nodeIn("a", "a1", 1), both[1]}, "b spot"},
		"a flavor that comes later":  {[]quota.Cluster{offers("a", 1, "later"), offers("b", 9, "later", "spot")}, []string{"spot"}, both, "b spot"},
		"none offers it":             {[]quota.Cluster{offers("a", 1, "reserved")}, []string{"spot"}, both[:1], `no cluster takes it now: cluster "a" does not offer flavor "spot"`},
		"the one that does has less": {[]quota.Cluster{offers("a", 1, "reserved")}, []string{"spot"}, []capacity.Node{both[0], nodeIn("b", "b1", 1)}, `not counted: cluster "a" does not offer flavor "spot"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, flavored(c.clusters, 8, c.flavors...)))
			for _, n := range c.nodes {
				s.SetNode(n)
			}
			wanting(s, "gang", 0, "", 1, 2)
			got := ""
			for _, a := range decide(s).Admissions {
				got = a.Cluster + " " + a.Flavors[0].Flavors["nvidia.com/gpu"]
			}
			switch {
			case got != "" && got != c.want:
				t.Errorf("it starts in %s, want %s", got, c.want)
			case got == "" && !strings.Contains(reasonText(s, "gang"), c.want):
				t.Errorf("it waits: %s; want %s", reasonText(s, "gang"), c.want)
			}
		})
	}
}

// The explanation and the certificate of a gang state for each cluster which flavor it lacks.
func TestNotOfferedFlavorsAreExplainedAndProven(t *testing.T) {
	t.Parallel()
	clusters := []quota.Cluster{offers("a", 1, "reserved"), offers("b", 1, "spot"), offers("c", 1, "reserved", "spot")}
	s := admission.NewState(treeOf(t, flavored(clusters, 8, "spot")))
	for _, n := range []capacity.Node{nodeIn("a", "a1", 4), nodeIn("b", "b1", 1), nodeIn("c", "c1", 0)} {
		s.SetNode(n)
	}
	set := setOf("workers", 1, 1, 2)
	set.PreferClusters = "muster.dev/cluster=b"
	enqueue(s, 0, "queue", []workload.PodSet{set})
	if got := admitted(decide(s)); len(got) > 0 {
		t.Fatalf("admitted are %v, want none", got)
	}
	e, _ := admission.Explain(s, "gang-0", start)
	var why []string
	for _, c := range e.Clusters {
		why = append(why, fmt.Sprintf("%s %v %v %s", c.Cluster, c.Open, c.Preferred, c.Message))
	}
	if len(why) != 3 || why[0] != `a false false cluster "a" does not offer flavor "spot"` || !strings.HasPrefix(why[1], "b true true") || !strings.HasPrefix(why[2], "c true false") {
		t.Errorf("the clusters are explained by %q", why)
	}
	document, none := admission.Certify(s, "gang-0", func() bool { return false })
	if document == nil {
		t.Fatalf("there is no certificate: %s", none)
	}
	argued := func() (proofs []string) {
		for _, a := range document.Alternatives[0].Arguments {
			proofs = append(proofs, fmt.Sprintf("%s %s %s", a.Cluster, a.Proof, a.Flavor))
		}
		return proofs
	}
	if got := argued(); !slices.Contains(got, "a notOffered spot") || strings.Count(strings.Join(got, ","), "notOffered") != 1 {
		t.Errorf("the arguments are %q, want one about the flavor of cluster a", got)
	}
	for i := range document.Clusters {
		document.Clusters[i].NotOffered = nil
	}
	if err := certificate.Verify(document); err == nil || !strings.Contains(err.Error(), `it offers flavor "spot"`) {
		t.Errorf("a cluster that offers the flavor: %v, want a refusal", err)
	}
}

// A gang goes on to places that victims leave only where its flavor is offered, and a nomination
// ends when its cluster offers the flavor no longer.
func TestVictimsAreWhereTheFlavorIsOffered(t *testing.T) {
	t.Parallel()
	low := func(s *admission.State, cluster string, order int64) {
		wanting(s, workload.ID("low-"+cluster), order, "muster.dev/cluster="+cluster, 1, 2)
	}
	clusters := []quota.Cluster{offers("a", 1, "spot"), offers("b", 9, "spot")}
	s := admission.NewState(treeOf(t, flavored(clusters, 8, "spot")))
	s.SetNode(nodeIn("a", "a1", 2))
	s.SetNode(nodeIn("b", "b1", 2))
	low(s, "a", 0)
	low(s, "b", 1)
	if got := admitted(decide(s)); len(got) != 2 {
		t.Fatalf("admitted are %v, want both", got)
	}
	only := func(cluster string) {
		described := []quota.Cluster{offers("a", 1, "other"), offers("b", 9, "other")}
		for i := range described {
			if described[i].Name == cluster {
				described[i].Flavors = []string{"spot"}
			}
		}
		s.Reconfigure(treeOf(t, flavored(described, 8, "spot")))
	}
	only("b")
	s.Enqueue(admission.Waiting{Order: 2, Workload: &workload.Workload{ID: "high", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 1, 1, 2)}}})
	later := start.Add(time.Minute)
	plan := admission.Decide(s, later)
	if len(plan.Evictions) != 1 || plan.Evictions[0].Workload != "low-b" {
		t.Fatalf("evictions are %+v, want that of low-b", plan.Evictions)
	}
	only("a")
	s.Leave("low-b")
	s.Release("low-b")
	if got := admitted(admission.Decide(s, later.Add(time.Second))); len(got) > 0 {
		t.Errorf("admitted are %v, want none in b, which offers the flavor no longer", got)
	}
}

// By random clusters a gang goes to one that it may be in and that has room, of these to one that
// it prefers, and of these to a cheapest one; or it waits because there is none.
func TestAGangGoesToThePreferredOfRandomClusters(t *testing.T) {
	t.Parallel()
	preferred, waited := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 24))
		var clusters []quota.Cluster
		free, may := map[string]int{}, map[string]bool{}
		for i := range 2 + r.IntN(4) {
			c := priced(fmt.Sprint("c", i), r.Int64N(3), map[string]string{"data": fmt.Sprint(r.IntN(2)), "zone": fmt.Sprint(r.IntN(2))})
			c.Flavors = [][]string{nil, {"spot"}, {"reserved"}, {"reserved", "spot"}}[r.IntN(4)]
			clusters = append(clusters, c)
		}
		s := admission.NewState(treeOf(t, flavored(clusters, 100, "spot")))
		for _, c := range clusters {
			free[c.Name] = r.IntN(5)
			s.SetNode(nodeIn(c.Name, c.Name+"-n", int64(free[c.Name])))
		}
		set := setOf("workers", 1+r.IntN(3), 1, 1)
		set.Clusters = []workload.ClusterSelector{"", "zone=1"}[r.IntN(2)]
		set.PreferClusters = []workload.ClusterSelector{"", "data=1", "data=1,zone=1"}[r.IntN(3)]
		better := func(a, b quota.Cluster) bool {
			inA, inB := set.PreferClusters.Matches(a.Name, a.Labels), set.PreferClusters.Matches(b.Name, b.Labels)
			if set.PreferClusters != "" && inA != inB {
				return inA
			}
			return a.Cost["nvidia.com/gpu"] < b.Cost["nvidia.com/gpu"]
		}
		var best []quota.Cluster
		for _, c := range clusters {
			may[c.Name] = (len(c.Flavors) == 0 || slices.Contains(c.Flavors, "spot")) && set.Clusters.Matches(c.Name, c.Labels)
			switch {
			case !may[c.Name] || free[c.Name] < set.Count || len(best) > 0 && better(best[0], c):
			case len(best) > 0 && better(c, best[0]):
				best = []quota.Cluster{c}
			default:
				best = append(best, c)
			}
		}
		enqueue(s, 0, "queue", []workload.PodSet{set})
		got, starts := admitted(decide(s))["gang-0"]
		if starts != (len(best) > 0) || starts && !slices.ContainsFunc(best, func(c quota.Cluster) bool { return c.Name == got }) {
			t.Errorf("seed %d: it is in %q, want one of %+v; it waits because of %s", seed, got, best, reasonText(s, "gang-0"))
		}
		switch {
		case !starts:
			waited++
		case set.PreferClusters != "" && set.PreferClusters.Matches(best[0].Name, best[0].Labels):
			preferred++
		}
	}
	if preferred < 30 || waited < 10 {
		t.Errorf("%d gangs went to clusters that they prefer and %d waited; the seeds show too little", preferred, waited)
	}
}

// A preference is none of Kubernetes' hard rules: where no preferred cluster has room the gang
// goes elsewhere at once, without an eviction.
func TestAPreferenceEvictsNoGang(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, flavored([]quota.Cluster{offers("a", 1), offers("b", 9)}, 8, "spot")))
	s.SetNode(nodeIn("a", "a1", 4))
	s.SetNode(nodeIn("b", "b1", 2))
	wanting(s, "low", 0, "muster.dev/cluster=b", 1, 2)
	decide(s)
	set := setOf("workers", 1, 1, 2)
	set.PreferClusters = "muster.dev/cluster=b"
	s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{ID: "high", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{set}}})
	plan := admission.Decide(s, start.Add(time.Minute))
	if got := admitted(plan); got["high"] != "a" || len(plan.Evictions) > 0 {
		t.Errorf("admitted are %v and evicted %v, want high in a and no eviction", got, plan.Evictions)
	}
}

// Nodes are asked for where the flavor is offered, and first where the workload prefers to be.
func TestNodesAreAskedForWhereTheFlavorIsOffered(t *testing.T) {
	t.Parallel()
	config := askingConfig(100)
	config.Clusters = []quota.Cluster{offers("a", 0, "other"), offers("b", 1), offers("c", 9, "default")}
	by := []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"cpu": "default", "nvidia.com/gpu": "default"}}}
	for name, c := range map[string]struct {
		prefers workload.ClusterSelector
		tried   []string
		asks    string
		other   bool
	}{
		"the cheapest":                {"", nil, "b", true},
		"a preferred one":             {"muster.dev/cluster=c", nil, "c", true},
		"another after it":            {"muster.dev/cluster=c", []string{"c"}, "b", true},
		"none after both that do":     {"", []string{"b", "c"}, "", false},
		"a preferred one that cannot": {"muster.dev/cluster=a", nil, "b", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := askingState(t, config)
			for _, cluster := range []string{"a", "b", "c"} {
				s.SetNode(nodeIn(cluster, "cpu", 0))
			}
			set := setOf("workers", 2, 1, 1)
			set.PreferClusters = c.prefers
			var tried []workload.TriedCluster
			for _, cluster := range c.tried {
				tried = append(tried, workload.TriedCluster{Cluster: cluster, Flavors: by})
			}
			s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "gang", Queue: "queue", PodSets: []workload.PodSet{set}}, TriedClusters: tried})
			if got := s.HasOtherCluster("gang", by, tried); got != c.other {
				t.Errorf("another cluster can be asked: %t, want %t", got, c.other)
			}
			asked := ""
			for _, a := range decide(s).Asks {
				asked = a.Cluster
			}
			if asked != c.asks {
				t.Errorf("it asks in %q, want %q; it waits because of %s", asked, c.asks, reasonText(s, "gang"))
			}
		})
	}
}
