package workload_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
)

// An object that moves has no home where its gang must run, and the name of what stands for it is
// another one that KubeRay takes.
func TestWhatStandsForAnObject(t *testing.T) {
	t.Parallel()
	const id = "0b1c2d3e-0000-5000-8000-000000000000"
	for _, c := range []struct {
		name, object, submitter string
		moves                   bool
		home, made, created     string
	}{
		{"message", "train", "nats/team-a", false, "", "", "train"},
		{"by kubectl", "train", "kubernetes/east/bob", false, "east", "east", "train"},
		{"by kubectl, of an unknown user", "train", "kubernetes/east", false, "east", "east", "train"},
		{"moves", "train", "kubernetes/east/bob", true, "", "east", "train-0b1c2d3e"},
		{"moves with a long name", strings.Repeat("n", 53), "kubernetes/east/bob", true, "", "east", strings.Repeat("n", 38) + "-0b1c2d3e"},
		{"moves with a dash at the cut", strings.Repeat("n", 37) + "-n", "kubernetes/east/bob", true, "", "east", strings.Repeat("n", 37) + "-0b1c2d3e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := workload.Workload{ID: id, Name: c.object, Submitter: c.submitter, Life: workload.Life{Moves: c.moves}}
			if w.Home() != c.home || w.MadeIn() != c.made || w.ObjectName() != c.created {
				t.Errorf("home %q, made in %q, created as %q; want %q, %q and %q", w.Home(), w.MadeIn(), w.ObjectName(), c.home, c.made, c.created)
			}
		})
	}
}

// An object that moves prefers the cluster where it was made, unless it or its queue prefers others.
func TestAnObjectThatMovesPrefersItsHome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		own, queues workload.ClusterSelector
		moves       bool
		want        workload.ClusterSelector
	}{
		{"moves", "", "", true, "muster.dev/cluster=east"},
		{"prefers others", "tier=spot", "", true, "tier=spot"},
		{"its queue prefers others", "", "data=images", true, "data=images"},
		{"stays", "", "data=images", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := workload.Workload{Submitter: "kubernetes/east/bob", Life: workload.Life{Moves: c.moves}, PodSets: []workload.PodSet{{Name: "head", PreferClusters: c.own}}}
			if got := (workload.Rules{PreferClusters: c.queues}).PreferringFor(&w)[0].PreferClusters; got != c.want {
				t.Errorf("it prefers %q, want %q", got, c.want)
			}
		})
	}
}
