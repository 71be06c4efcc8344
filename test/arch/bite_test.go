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
		"pkg/desk imports what runs a service: the client stays small: no service, and none of their servers and exporters",
		"pkg/message/event links client-go: values and rules talk to no server: muster.dev/muster/pkg/message/event -> muster.dev/muster/pkg/store -> k8s.io/client-go",
		"pkg/spec/resource imports muster.dev/muster/pkg/spec/workload: it may import the standard library and []",
		"pkg/spec/resource imports os: it is pure, without effects, clock or chance",
		"pkg/spec/resource/resource.go:14 uses time.Now: times are values here",
		"pkg/store imports a local database: a service uses Postgres, it does not run one",
		"pkg/store imports client-go: only capacity-watcher, dispatcher and intake's Kubernetes controller talk to an API server",
		"pkg/store/quantity.go:11 decodes beside types with quantities: Decode of pkg/kube checks them first",
		"pkg/store/quantity.go:14 parses a quantity: pkg/kube does, which bounds it",
		"pkg/util has no package comment that says what it is for",
		"pkg/util: the folder name \"util\" does not say what is in it",
		"services/dispatcher/app imports nats.go: streams, subjects and settlement are package bus's",
		"services/dispatcher/app imports package pgtest: test databases are for tests",
		"services/dispatcher/app links pgx: only queue-manager talks to Postgres: muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/testkit/pgtest -> github.com/jackc/pgx/v5",
		"services/intake imports module test: nothing imports test",
		"services/intake imports services/dispatcher/app: services know each other by messages only",
		"services/intake imports what the clients share: a service is no client of Muster",
		"services/intake links package pgtest: test databases are for tests: muster.dev/muster/services/intake -> muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/testkit/pgtest",
		"services/intake links pgx: only queue-manager talks to Postgres: muster.dev/muster/services/intake -> muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/testkit/pgtest -> github.com/jackc/pgx/v5",
		"services/internal/client imports services/dispatcher/app: services stand on packages, not the reverse",
		"services/internal/client imports what runs a service: the client stays small: no service, and none of their servers and exporters",
		"services/muster links client-go: only capacity-watcher, dispatcher and intake's Kubernetes controller talk to an API server: muster.dev/muster/services/muster -> muster.dev/muster/services/internal/client -> muster.dev/muster/services/dispatcher/app -> k8s.io/client-go",
		"services/muster links package pgtest: test databases are for tests: muster.dev/muster/services/muster -> muster.dev/muster/services/internal/client -> muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/testkit/pgtest",
		"services/muster links what runs a service: the client stays small: no service, and none of their servers and exporters: muster.dev/muster/services/muster -> muster.dev/muster/services/internal/client -> muster.dev/muster/services/dispatcher/app",
		"services/muster-dev links package pgtest: test databases are for tests: muster.dev/muster/services/muster-dev -> muster.dev/muster/services/dispatcher/app -> muster.dev/muster/pkg/testkit/pgtest",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches found (-want +got):\n%s", diff)
	}
}

// TestReadersBite: a package that decodes without a fuzz target is found, and so is
// each way in which a row of the table may be wrong.
func TestReadersBite(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(filepath.Join("testdata", "breaches"))
	if err != nil {
		t.Fatal(err)
	}
	graph, err := Load(dir, true, "./...")
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, graph)
	for name, c := range map[string]struct {
		known map[string]reading
		want  []string
	}{
		"nothing is known": {nil, []string{"pkg/store decodes text, and no fuzz target is listed that tries it (readers.go)"}},
		"it decodes more than is known": {
			map[string]reading{"pkg/store": {why: "it does not"}},
			[]string{"pkg/store decodes text in 1 places, and readers.go knows of 0: does a fuzz target try all of them?"},
		},
		"no target, no reason": {map[string]reading{"pkg/store": {calls: 1}}, []string{"pkg/store has neither a fuzz target nor a reason for that"}},
		"a target that is gone": {
			map[string]reading{"pkg/store": {calls: 1, targets: []string{"pkg/store.FuzzGone"}}},
			[]string{"pkg/store is to be tried by pkg/store.FuzzGone, which does not exist"},
		},
		"a target that does not reach it": {
			map[string]reading{"pkg/store": {calls: 1, targets: []string{"pkg/spec/resource.FuzzList"}}},
			[]string{"pkg/store is to be tried by pkg/spec/resource.FuzzList, which does not link it"},
		},
		"a package that is gone": {
			map[string]reading{"pkg/store": {calls: 1, targets: []string{"pkg/store.FuzzStore"}}, "pkg/gone": {why: "none"}},
			[]string{"pkg/gone does not exist, and readers.go has a row for it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, checkReaders(graph, files, c.known)); diff != "" {
				t.Errorf("breaches found (-want +got):\n%s", diff)
			}
		})
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
