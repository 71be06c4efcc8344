package admission_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// upTo is a namespace whose containers may have a limit of that number of GPUs.
func upTo(gpus int64) admission.Namespace {
	return admission.Namespace{Ranges: []workload.LimitRange{{Name: "limits", Items: []workload.LimitItem{{Max: resource.List{"nvidia.com/gpu": gpus}}}}}}
}

// gpuGang is a gang of a pod with one container.
func gpuGang(id workload.ID, namespace string, gpus int64) *workload.Workload {
	set := setOf("workers", 1, 1, gpus)
	amounts := resource.List{"nvidia.com/gpu": gpus}
	set.Template.Asks = [][]workload.ContainerAsk{{{Name: "worker", Requests: amounts, Limits: amounts}}}
	return &workload.Workload{ID: id, Queue: "queue", Namespace: namespace, PodSets: []workload.PodSet{set}}
}

func enqueueGPUs(s *admission.State, id workload.ID, namespace string, order, gpus int64) {
	s.Enqueue(admission.Waiting{Order: order, Workload: gpuGang(id, namespace, gpus)})
}

const beyondTwo = `container "worker" of pod set "workers" has a limit of nvidia.com/gpu 3, and LimitRange "limits" allows a container 2 at most`

// The API server would refuse its pods, so the gang waits with that reason and others pass, also
// where none may pass the head. Another LimitRange counts at once; what runs stays.
func TestAGangBeyondItsLimitRangeIsHeld(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{quota.StrictFIFO, quota.BestEffortFIFO, quota.Backfill} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "queue", Strategy: strategy}}}))
			s.SetNode(nodeIn("c", "node", 4))
			s.SetNamespace("c", "ns", upTo(2))
			enqueueGPUs(s, "large", "ns", 0, 3)
			enqueueGPUs(s, "small", "ns", 1, 1)
			plan := decide(s)
			if got := admitted(plan); len(got) != 1 || got["small"] != "c" {
				t.Fatalf("admitted are %v", got)
			}
			if got, want := reasonOf(plan, "large"), `Held: namespace "ns" of cluster "c": `+beyondTwo+"; it waits until the LimitRange allows it"; got != want {
				t.Errorf("it waits because %s\nwant %s", got, want)
			}
			if _, why := admission.Certify(s, "large", func() bool { return false }); !strings.Contains(why, beyondTwo) {
				t.Errorf("it has no certificate because %s", why)
			}
			s.SetNamespace("c", "ns", upTo(3))
			if got := admitted(decide(s)); got["large"] != "c" {
				t.Fatalf("with a larger maximum admitted are %v", got)
			}
			s.SetNamespace("c", "ns", upTo(1))
			if plan := decide(s); len(plan.Evictions) > 0 {
				t.Errorf("with a smaller maximum evicted are %v", plan.Evictions)
			}
			s.Release("large")
			enqueueGPUs(s, "again", "ns", 2, 2)
			if got := reasonOf(decide(s), "again"); !strings.Contains(got, "allows a container 1 at most") {
				t.Errorf("it waits because %s", got)
			}
			s.RemoveNamespace("c", "ns")
			if got := admitted(decide(s)); got["again"] != "c" {
				t.Errorf("without the namespace admitted are %v", got)
			}
		})
	}
}

// A gang that one cluster would refuse goes to another one. While that has no room its reason
// has both, and it starts in the first as soon as its LimitRange is another.
func TestAGangGoesWhereItKeepsTheLimitRange(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	for _, cluster := range []string{"east", "west"} {
		s.SetNode(nodeIn(cluster, "node", 4))
	}
	s.SetNamespace("east", "ns", upTo(2))
	enqueueGPUs(s, "first", "ns", 0, 3)
	if got := admitted(decide(s)); got["first"] != "west" {
		t.Fatalf("admitted are %v", got)
	}
	enqueueGPUs(s, "second", "ns", 1, 3)
	if got := reasonOf(decide(s), "second"); !strings.Contains(got, beyondTwo) || strings.HasPrefix(got, "Held") {
		t.Errorf("it waits because %s", got)
	}
	home := gpuGang("home", "ns", 3)
	home.Submitter = workload.ByKubernetes + "/east/ana"
	s.Enqueue(admission.Waiting{Order: 2, Workload: home})
	if got := reasonOf(decide(s), "home"); !strings.HasPrefix(got, "Held") {
		t.Errorf("with its object in the east it waits because %s", got)
	}
	s.SetNamespace("east", "ns", upTo(3))
	if got := admitted(decide(s)); len(got) != 1 || got["second"] != "east" {
		t.Errorf("with a larger maximum admitted are %v", got)
	}
}

// A cluster that does not take the workload for another reason does not keep it from being
// held, and its first node counts.
func TestOnlyClustersThatMayTakeAGangCount(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{
		ClusterQueues: []quota.ClusterQueue{{Name: "queue"}}, Clusters: []quota.Cluster{{Name: "foreign", Queues: []string{"other"}}},
	}))
	s.SetNode(nodeIn("foreign", "node", 4))
	s.SetNode(nodeIn("c", "node", 4))
	s.SetNamespace("c", "ns", upTo(2))
	enqueueGPUs(s, "gang", "ns", 0, 3)
	if got := reasonOf(decide(s), "gang"); !strings.HasPrefix(got, `Held: namespace "ns" of cluster "c"`) {
		t.Errorf("it waits because %s", got)
	}
	s.SetNode(nodeIn("d", "node", 4))
	if got := admitted(decide(s)); got["gang"] != "d" {
		t.Errorf("with another cluster admitted are %v", got)
	}
}

// The reason of a gang names its own namespace, also where another one with equal pods is kept out
// of the same cluster.
func TestAReasonNamesNoLimitRangeOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	for _, cluster := range []string{"east", "west"} {
		s.SetNode(nodeIn(cluster, "node", 2))
	}
	names := map[workload.ID]string{"one": "of-one", "other": "of-other"}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		n := upTo(2)
		n.Ranges[0].Name = names[id]
		s.SetNamespace("east", string(id), n)
		enqueueGPUs(s, id, string(id), 0, 3)
	}
	plan := decide(s)
	for id, own := range names {
		for namespace, limits := range names {
			why := reasonOf(plan, id)
			if got, want := strings.Contains(why, limits) || strings.Contains(why, fmt.Sprintf("namespace %q", namespace)), limits == own; got != want {
				t.Errorf("the reason of %s names %s of %s: %v, want %v: %s", id, limits, namespace, got, want, why)
			}
		}
	}
}

// TestLimitRangesDecideWhereGangsGo: whatever LimitRanges come and go, each decision admits a gang
// only where it keeps them, holds those that keep them nowhere, and leaves none waiting that has
// room where it keeps them.
func TestLimitRangesDecideWhereGangsGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, now := admission.NewState(nil), start
		clusters, namespaces := []string{"east", "west"}, []string{"a", "b"}
		free, most := map[string]int64{}, map[string]int64{} // of GPUs, by cluster, and by cluster and namespace
		waiting, started := map[workload.ID]*workload.Workload{}, map[workload.ID]string{}
		gpus := func(w *workload.Workload) int64 { return w.PodSets[0].Template.Requests["nvidia.com/gpu"] }
		keeps := func(w *workload.Workload, cluster string) bool {
			bound, bounded := most[cluster+"/"+w.Namespace]
			return !bounded || gpus(w) <= bound
		}
		all := map[workload.ID]*workload.Workload{}
		for i := range rapid.IntRange(1, 25).Draw(t, "events") {
			cluster := rapid.SampledFrom(clusters).Draw(t, "cluster")
			namespace := rapid.SampledFrom(namespaces).Draw(t, "namespace")
			switch rapid.SampledFrom([]string{"gang", "gang", "bound", "bound", "unbound", "node", "end"}).Draw(t, "event") {
			case "gang":
				w := gpuGang(workload.ID(fmt.Sprint("gang-", i)), namespace, rapid.Int64Range(1, 4).Draw(t, "GPUs"))
				all[w.ID], waiting[w.ID] = w, w
				s.Enqueue(admission.Waiting{Order: int64(i), Workload: w})
			case "bound":
				bound := rapid.Int64Range(0, 4).Draw(t, "bound")
				most[cluster+"/"+namespace] = bound
				s.SetNamespace(cluster, namespace, upTo(bound))
			case "unbound":
				delete(most, cluster+"/"+namespace)
				s.RemoveNamespace(cluster, namespace)
			case "node":
				if _, there := free[cluster]; !there {
					free[cluster] = 6
					s.SetNode(nodeIn(cluster, "node", 6))
				}
			case "end":
				for _, id := range slices.Sorted(maps.Keys(started)) {
					free[started[id]] += gpus(all[id])
					delete(started, id)
					s.Release(id)
					break
				}
			}
			now = now.Add(time.Second)
			plan := admission.Decide(s, now)
			for _, a := range plan.Admissions {
				if !keeps(all[a.Workload], a.Cluster) {
					t.Fatalf("%s of namespace %s with %d GPUs is admitted in %s with bounds %v", a.Workload, all[a.Workload].Namespace, gpus(all[a.Workload]), a.Cluster, most)
				}
				free[a.Cluster] -= gpus(all[a.Workload])
				started[a.Workload] = a.Cluster
				delete(waiting, a.Workload)
			}
			if len(plan.Evictions) > 0 {
				t.Fatalf("evicted are %v", plan.Evictions)
			}
			for id, w := range waiting {
				held := len(free) > 0
				for cluster, left := range free {
					held = held && !keeps(w, cluster)
					if keeps(w, cluster) && gpus(w) <= left {
						t.Fatalf("%s of namespace %s with %d GPUs waits because %+v, with %d free in %s and bounds %v", id, w.Namespace, gpus(w), s.Reason(id), left, cluster, most)
					}
				}
				if why := s.Reason(id); why == nil || (why.Kind == workload.ReasonHeld) != held {
					t.Fatalf("%s with %d GPUs has the reason %+v, want it held: %v, with bounds %v", id, gpus(w), why, held, most)
				}
			}
		}
	})
}
