package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// strayOf is a pod of a ReplicaSet, which is not of Muster.
func strayOf(replicaSet string) gang.Pod {
	return gang.Pod{Namespace: "n", Name: "p-" + replicaSet, UID: "p-" + replicaSet, Node: "a", Controller: gang.Controller{Kind: "ReplicaSet", Name: replicaSet, UID: replicaSet}}
}

// TestTheNumberOfStraysIsAlwaysThere: a scrape in the middle of a round finds the
// number of the last one; a namespace whose rule is to count is not shown any more.
func TestTheNumberOfStraysIsAlwaysThere(t *testing.T) {
	t.Parallel()
	p := play(t)
	rules := map[string]string{"n": workload.WarnOfStrays}
	p.cluster.others = []gang.Pod{strayOf("first")}
	p.Strays(t.Context(), rules)
	shown := func() float64 { return testutil.ToFloat64(p.metrics.strays.WithLabelValues("n")) }
	if got := shown(); got != 1 {
		t.Fatalf("%v strays after the first round, want 1", got)
	}
	asked := false
	p.cluster.others = append(p.cluster.others, strayOf("second"))
	p.cluster.asked = func(string) {
		if asked = true; testutil.CollectAndCount(p.metrics.strays) != 1 || shown() != 1 {
			t.Errorf("in the middle of a round %d namespaces are shown, of n %v strays; want the 1 of the round before", testutil.CollectAndCount(p.metrics.strays), shown())
		}
	}
	p.Strays(t.Context(), rules)
	if got := shown(); !asked || got != 2 {
		t.Errorf("%v strays after the second round, want 2; asked in it: %v", got, asked)
	}
	p.Strays(t.Context(), nil)
	if got := testutil.CollectAndCount(p.metrics.strays); got != 0 {
		t.Errorf("%d namespaces are shown without a rule, want none", got)
	}
}

// TestStraysAskLittle: each controller is asked for once, a namespace has a bounded
// number of questions in a round, and what is gone is forgotten.
func TestStraysAskLittle(t *testing.T) {
	t.Parallel()
	p := play(t)
	rules := map[string]string{"n": workload.WarnOfStrays}
	asked := 0
	p.cluster.asked = func(string) { asked++ }
	for i := range asksPerRound + 50 {
		p.cluster.others = append(p.cluster.others, strayOf(fmt.Sprint(i)))
	}
	for i, want := range []int{asksPerRound, asksPerRound + 50, asksPerRound + 50} {
		if p.Strays(t.Context(), rules); asked != want {
			t.Errorf("%d questions after round %d, want %d", asked, i+1, want)
		}
	}
	p.cluster.others = nil
	if p.Strays(t.Context(), rules); len(p.owners.controllers.controllerOf) > 0 || len(p.owners.controllers.controlled) > 0 || len(p.strays.since) > 0 {
		t.Errorf("of pods that are gone %d controllers are remembered", len(p.owners.controllers.controllerOf))
	}
}

// TestPodsOfAWrappedDeploymentPastMuster: they are found through what stands between,
// without going through the pods of the namespace, and deleted.
func TestPodsOfAWrappedDeploymentPastMuster(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := wrapped(t, "a")
	p.Command(&command)
	_ = p.see(t, 3)
	status := p.status
	if len(status.Objects) != 1 {
		t.Fatalf("%d objects were created, want 1: %+v", len(status.Objects), status)
	}
	pod := strayOf("between")
	p.cluster.others, p.cluster.above = []gang.Pod{pod}, map[string]string{"between": status.Objects[0].UID}
	p.cluster.owned["between"] = []gang.Pod{pod}
	if made := p.owners.made(status); len(made) != 0 {
		t.Fatalf("%d pods are known before the first round, want none", len(made))
	}
	p.Strays(t.Context(), nil)
	p.clock = p.clock.Add(time.Minute)
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	if len(p.cluster.deleted) != 1 || p.cluster.deleted[0] != pod.Name {
		t.Errorf("deleted are %q, want %q", p.cluster.deleted, pod.Name)
	}
}
