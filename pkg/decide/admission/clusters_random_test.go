package admission_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Whatever the clusters, no gang is placed where it is not allowed, and of the victims of a
// decision those of one preemptor are in one cluster.
func TestClusterRulesHoldForRandomStates(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 21))
		names := []string{"a", "b", "c"}
		preemption := `"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"`
		config := gpuPolicy(t, r.IntN(2) == 0, gpuQueue("one", 1+r.IntN(8), preemption), gpuQueue("two", 1+r.IntN(8), preemption))
		config.Clusters = []quota.Cluster{
			priced("a", r.Int64N(3), map[string]string{"zone": fmt.Sprint(r.IntN(2))}), priced("b", r.Int64N(3), map[string]string{"zone": fmt.Sprint(r.IntN(2))}),
		}
		if r.IntN(3) == 0 {
			config.Clusters[0].Queues = []string{"one"}
		}
		s := admission.NewState(treeOf(t, config))
		for i := range 2 + r.IntN(6) {
			s.SetNode(nodeIn(names[r.IntN(3)], fmt.Sprintf("n%d", i), int64(1+r.IntN(4))))
		}
		where, workloads := map[workload.ID]string{}, map[workload.ID]*workload.Workload{}
		now := start
		for step := range 30 {
			switch r.IntN(4) {
			case 0:
				config.ClusterCordons = nil
				if r.IntN(2) == 0 {
					config.ClusterCordons = []quota.ClusterCordon{cordon(names[r.IntN(3)], r.IntN(2) == 0)}
				}
				config.Clusters = slices.Clone(config.Clusters) // trees have the old ones
				config.Clusters[r.IntN(2)].Flavors = [][]string{nil, {"default"}, {"other"}}[r.IntN(3)]
				s.Reconfigure(treeOf(t, config))
			case 1:
				s.SetSilent(nil)
				if r.IntN(2) == 0 {
					s.SetSilent(map[string]time.Time{names[r.IntN(3)]: now})
				}
			default:
				w := &workload.Workload{
					ID: workload.ID(fmt.Sprintf("w%d", step)), Queue: []string{"one", "two"}[r.IntN(2)], Priority: int32(r.IntN(3)),
					PodSets: []workload.PodSet{setOf("workers", 1+r.IntN(3), 0, 1)},
				}
				if r.IntN(3) == 0 {
					w.PodSets[0].Clusters = "zone=1"
				}
				if r.IntN(3) == 0 {
					w.PodSets[0].PreferClusters = "zone=0"
				}
				workloads[w.ID] = w
				s.Enqueue(admission.Waiting{Order: int64(step), Workload: w})
			}
			now = now.Add(time.Minute)
			plan := admission.Decide(s, now)
			checkClusters(t, seed, s, config, plan, workloads, where)
			for _, e := range plan.Evictions { // their pods are gone before the next decision, or some steps later
				if r.IntN(2) == 0 {
					s.Leave(e.Workload)
					s.Release(e.Workload)
				}
			}
		}
	}
}

func checkClusters(t *testing.T, seed uint64, s *admission.State, config quota.Config, plan admission.Plan, workloads map[workload.ID]*workload.Workload, where map[workload.ID]string) {
	t.Helper()
	for _, a := range plan.Admissions {
		where[a.Workload] = a.Cluster
		w := workloads[a.Workload]
		described := slices.IndexFunc(config.Clusters, func(c quota.Cluster) bool { return c.Name == a.Cluster })
		var c quota.Cluster
		if described >= 0 {
			c = config.Clusters[described]
		}
		if w.PodSets[0].Clusters != "" && c.Labels["zone"] != "1" {
			t.Errorf("seed %d: %s with selector %s is in cluster %s with labels %v", seed, w.ID, w.PodSets[0].Clusters, a.Cluster, c.Labels)
		}
		if len(c.Queues) > 0 && !slices.Contains(c.Queues, w.Queue) {
			t.Errorf("seed %d: %s of queue %s is in cluster %s, which takes %v", seed, w.ID, w.Queue, a.Cluster, c.Queues)
		}
		if len(c.Flavors) > 0 && !slices.Contains(c.Flavors, "default") {
			t.Errorf("seed %d: %s is in cluster %s, which offers %v", seed, w.ID, a.Cluster, c.Flavors)
		}
		if slices.ContainsFunc(config.ClusterCordons, func(o quota.ClusterCordon) bool { return o.Name == a.Cluster }) {
			t.Errorf("seed %d: %s is admitted in the cordoned cluster %s", seed, w.ID, a.Cluster)
		}
		if !s.Silent(a.Cluster).IsZero() {
			t.Errorf("seed %d: %s is admitted in the silent cluster %s", seed, w.ID, a.Cluster)
		}
	}
	victims := map[workload.ID]map[string]bool{}
	for _, e := range plan.Evictions {
		if e.Reason.Preemption == nil {
			continue
		}
		by := e.Reason.Preemption.Preemptor
		if victims[by] == nil {
			victims[by] = map[string]bool{}
		}
		victims[by][where[e.Workload]] = true
		if len(victims[by]) > 1 {
			t.Errorf("seed %d: the victims of %s are in clusters %v", seed, by, victims[by])
		}
	}
}
