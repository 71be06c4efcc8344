package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Gangs with equal pods share no verdict when a LimitRange of one namespace bounds them.
func TestNamespacesOfOneShapeAreJudgedApart(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	for _, cluster := range []string{"east", "west"} {
		s.SetNode(nodeIn(cluster, "node", 3))
	}
	s.SetNamespace("east", "bounded", upTo(2))
	enqueueGPUs(s, "other", "bounded", 0, 3)
	if got := admitted(decide(s)); got["other"] != "west" {
		t.Fatalf("admitted are %v", got)
	}
	enqueueGPUs(s, "bounded", "bounded", 1, 3)
	enqueueGPUs(s, "free", "free", 2, 3)
	if got := admitted(decide(s)); len(got) != 1 || got["free"] != "east" {
		t.Errorf("admitted are %v", got)
	}
}

// Containers have other names in each job. Gangs that differ in nothing else share what searches
// for places have found.
func TestNamesOfContainersCostNoSearch(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeIn("c", "node", 2))
	for i := range 10 {
		w := gpuGang(workload.ID(fmt.Sprint("gang-", i)), "ns", 3)
		w.PodSets[0].Template.Asks[0][0].Name = fmt.Sprint("worker-", i)
		s.Enqueue(admission.Waiting{Order: int64(i), Workload: w})
	}
	decide(s)
	if got := admission.Flavored(s); got != 1 {
		t.Errorf("%d searches are kept, want one", got)
	}
	s.SetNode(nodeIn("c", "node", 6))
	if got := admitted(decide(s)); len(got) != 2 {
		t.Errorf("with room for two admitted are %v", got)
	}
}

// A LimitRange changes no answer about another namespace.
func TestALimitRangeCostsItsOwnNamespaceAlone(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeIn("c", "node", 4))
	for i, namespace := range []string{"a", "b"} {
		s.SetNamespace("c", namespace, upTo(2))
		enqueueGPUs(s, workload.ID(namespace), namespace, int64(i), 3)
	}
	decide(s)
	if got := admission.Judged(s); got != 2 {
		t.Fatalf("%d answers are kept, want 2", got)
	}
	s.SetNamespace("c", "b", upTo(3))
	if got := admission.Judged(s); got != 1 {
		t.Errorf("%d answers are kept, want that of the other namespace", got)
	}
	if got := admitted(decide(s)); len(got) != 1 || got["b"] != "c" {
		t.Errorf("admitted are %v", got)
	}
}

// Gangs that ask for the same and differ in limits, or in a name, share no verdict either.
func TestGangsThatDifferInLimitsAreJudgedApart(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeIn("c", "node", 4))
	s.SetNamespace("c", "ns", admission.Namespace{Ranges: []workload.LimitRange{{Name: "limits", Items: []workload.LimitItem{{Max: resource.List{"cpu": 3000}}}}}})
	for i, c := range []struct {
		name  string
		limit int64
	}{{"low", 2000}, {"high", 4000}, {"other", 4000}} {
		w := gpuGang(workload.ID(c.name), "ns", 1)
		w.PodSets[0].Template.Asks = [][]workload.ContainerAsk{{{Name: c.name, Requests: resource.List{"cpu": 1000}, Limits: resource.List{"cpu": c.limit}}}}
		s.Enqueue(admission.Waiting{Order: int64(i), Workload: w})
	}
	plan := decide(s)
	if got := admitted(plan); len(got) != 1 || got["low"] != "c" {
		t.Errorf("admitted are %v", got)
	}
	for _, id := range []workload.ID{"high", "other"} {
		if got := reasonOf(plan, id); !strings.Contains(got, fmt.Sprintf("container %q of pod set", id)) {
			t.Errorf("%s waits because %s", id, got)
		}
	}
}
