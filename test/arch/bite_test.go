package arch

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRulesBite runs the rules on a small repository that breaks each of them.
func TestRulesBite(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(filepath.Join("testdata", "breaches"))
	if err != nil {
		t.Fatal(err)
	}
	graph, err := Load(dir, true, "./...")
	if err != nil {
		t.Fatal(err)
	}
	inSource, err := CheckSource(graph.Ours())
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Concat(CheckImports(graph), inSource)
	slices.Sort(got)
	want := []string{
		"pkg/desk imports a local cluster: a service uses Kubernetes, it does not run one",
		"pkg/desk imports package testing: what runs in production links no test support",
		"pkg/desk imports services/dispatcher/app: services stand on packages, not the reverse",
		"pkg/desk imports the NATS server: a service uses NATS, it does not run one",
		"pkg/resource imports muster.dev/muster/pkg/workload: it may import the standard library and []",
		"pkg/resource imports os: it is pure, without effects, clock or chance",
		"pkg/resource/resource.go:14 uses time.Now: times are values here",
		"pkg/store imports a local database: a service uses Postgres, it does not run one",
		"pkg/store imports client-go: only capacity-watcher, dispatcher and intake's door talk to an API server",
		"pkg/store/quantity.go:11 decodes beside types with quantities: Decode of pkg/kube checks them first",
		"pkg/store/quantity.go:14 parses a quantity: pkg/kube does, which bounds it",
		"pkg/util has no package comment that says what it is for",
		"pkg/util: the folder name \"util\" does not say what is in it",
		"services/dispatcher/app imports nats.go: streams, subjects and settlement are package bus's",
		"services/dispatcher/app imports package pgtest: test databases are for tests",
		"services/dispatcher/app links pgx: only queue-manager talks to Postgres: muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/pgtest -> github.com/jackc/pgx/v5",
		"services/intake imports module test: nothing imports test",
		"services/intake imports services/dispatcher/app: services know each other by messages only",
		"services/intake links package pgtest: test databases are for tests: muster.dev/muster/services/intake -> muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/pgtest",
		"services/intake links pgx: only queue-manager talks to Postgres: muster.dev/muster/services/intake -> muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/pgtest -> github.com/jackc/pgx/v5",
		"services/muster links package pgtest: test databases are for tests: muster.dev/muster/services/muster -> muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/pgtest",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches found (-want +got):\n%s", diff)
	}
}

// TestChain finds the shortest way.
func TestChain(t *testing.T) {
	t.Parallel()
	graph := Graph{
		"a": {ImportPath: "a", Imports: []string{"b", "c"}},
		"b": {ImportPath: "b", Imports: []string{"d"}},
		"c": {ImportPath: "c", Imports: []string{"e"}},
		"d": {ImportPath: "d", Imports: []string{"e"}},
	}
	if diff := cmp.Diff([]string{"a", "c", "e"}, graph.Chain("a", under("e"))); diff != "" {
		t.Errorf("chain from a to e (-want +got):\n%s", diff)
	}
	if chain := graph.Chain("d", under("a")); chain != nil {
		t.Errorf("chain from d to a: %v, want none", chain)
	}
}
