package admission_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// A workload does not ask where there were no nodes by the same flavors, and its reason names these
// clusters.
func TestTheNextClusterIsAsked(t *testing.T) {
	t.Parallel()
	by := func(flavor string) []workload.PodSetFlavors {
		return []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"cpu": flavor, "nvidia.com/gpu": flavor}}}
	}
	in := func(flavor string, clusters ...string) (tried []workload.TriedCluster) {
		for _, cluster := range clusters {
			tried = append(tried, workload.TriedCluster{Cluster: cluster, Flavors: by(flavor)})
		}
		return tried
	}
	for name, test := range map[string]struct {
		tried  []workload.TriedCluster
		home   string
		asks   string // the cluster
		reason string
		other  bool
	}{
		"none":                  {nil, "", "a", "its quota is reserved", true},
		"the first":             {in("default", "a"), "", "b", "; before that it asked in vain in cluster a", true},
		"two":                   {in("default", "a", "b"), "", "c", "; before that it asked in vain in clusters a, b", true},
		"all":                   {in("default", "a", "b", "c", "d", "e"), "", "", "", false},
		"four":                  {in("default", "a", "b", "c", "d"), "", "e", "in clusters a, b, c and 1 more", true},
		"by another flavor":     {in("spot", "a"), "", "a", "", true},
		"of an object's own":    {in("default", "a"), "a", "", "", false},
		"of an object's, first": {nil, "b", "b", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := askingState(t, askingConfig(100))
			for _, cluster := range []string{"a", "b", "c", "d", "e"} {
				s.SetNode(nodeIn(cluster, "cpu", 0))
			}
			w := &workload.Workload{ID: "gang", Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 2, 1, 1)}}
			if test.home != "" {
				w.Submitter = workload.ByKubernetes + "/" + test.home + "/ana"
			}
			s.Enqueue(admission.Waiting{Workload: w, TriedClusters: test.tried, Reported: true})
			if got := s.HasOtherCluster("gang", by("default"), test.tried); got != test.other {
				t.Errorf("another cluster can be asked: %t, want %t", got, test.other)
			}
			plan := decide(s)
			switch {
			case test.asks == "" && len(plan.Asks) > 0:
				t.Errorf("it asks: %+v", plan.Asks)
			case test.asks != "" && (len(plan.Asks) != 1 || plan.Asks[0].Cluster != test.asks):
				t.Errorf("it asks %+v, want cluster %s", plan.Asks, test.asks)
			case test.asks != "" && !strings.HasSuffix(plan.Waits[0].Reason.Message, test.reason):
				t.Errorf("it waits for %q, want %q at the end", plan.Waits[0].Reason.Message, test.reason)
			}
		})
	}
}

// Gangs that have asked in different clusters do not wait for each other.
func TestGangsThatAskedElsewhereAreOfAnotherClass(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, askingConfig(100)))
	s.SetNode(nodeIn("a", "cpu", 0))
	flavors := []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"cpu": "default", "nvidia.com/gpu": "default"}}}
	tried := []workload.TriedCluster{{Cluster: "a", Flavors: flavors}}
	for order, in := range [][]workload.TriedCluster{tried, nil} {
		s.Enqueue(admission.Waiting{Order: int64(order), TriedClusters: in, Workload: &workload.Workload{
			ID: workload.ID([]string{"tried", "new"}[order]), Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 2, 1, 1)},
		}})
	}
	wantPlan(t, decide(s), "ask new [{workers 2}]")
}

// Nor do gangs that have asked in one cluster by different flavors.
func TestGangsThatAskedByOtherFlavorsAreOfAnotherClass(t *testing.T) {
	t.Parallel()
	by := func(flavor string) []workload.PodSetFlavors {
		return []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"cpu": flavor, "nvidia.com/gpu": flavor}}}
	}
	inA := func(flavor string) admission.Waiting {
		return admission.Waiting{TriedClusters: []workload.TriedCluster{{Cluster: "a", Flavors: by(flavor)}}}
	}
	byAny := func(flavor string) admission.Waiting {
		return admission.Waiting{Tried: [][]workload.PodSetFlavors{by(flavor)}}
	}
	for name, tried := range map[string]func(flavor string) admission.Waiting{"in a cluster": inA, "in all": byAny} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := askingConfig(100)
			c.Flavors = append(c.Flavors, quota.Flavor{Name: "scarce"})
			scarce := c.ClusterQueues[0].ResourceGroups[0].Flavors[0]
			scarce.Name, scarce.Resources = "scarce", []quota.ResourceQuota{{Name: "cpu", Nominal: 1000}, {Name: "nvidia.com/gpu", Nominal: 1}}
			c.ClusterQueues[0].ResourceGroups[0].Flavors = append(c.ClusterQueues[0].ResourceGroups[0].Flavors, scarce)
			s := askingState(t, c, nodeIn("a", "cpu", 0))
			for order, flavor := range []string{"default", "scarce"} {
				w := tried(flavor)
				w.Order, w.Workload = int64(order), &workload.Workload{
					ID: workload.ID("tried-" + flavor), Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 2, 1, 1)},
				}
				s.Enqueue(w)
			}
			wantPlan(t, decide(s), "ask tried-scarce [{workers 2}]")
		})
	}
}
