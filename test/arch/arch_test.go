package arch

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// workspace is the packages of the workspace and all that they import. Tests read it and do
// not change it, so that go list, which takes seconds, runs once.
var workspace = sync.OnceValues(func() (Graph, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return Load(root, false, "work")
})

// TestRepository holds the whole repository against the rules.
func TestRepository(t *testing.T) {
	t.Parallel()
	graph, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range slices.Concat(pure(), timeless()) {
		if graph[prefix+pkg] == nil {
			t.Errorf("%s does not exist: the rule about it enforces nothing", pkg)
		}
	}
	report(t, graph)
}

// TestDevcluster holds the module outside the workspace against the rules. What
// it imports is not looked at: it is all of Kubernetes.
func TestDevcluster(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	graph, err := list(filepath.Join(root, "deploy", "devcluster"), true, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(graph.Ours()) == 0 {
		t.Fatal("no package found")
	}
	report(t, graph)
}

// TestEveryReaderIsFuzzed: a fuzz target tries each package that decodes text from
// outside, or the table says why that need not be.
func TestEveryReaderIsFuzzed(t *testing.T) {
	t.Parallel()
	graph, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, graph)
	for _, breach := range checkReaders(graph, files, readings()) {
		t.Error(breach)
	}
}

// filesOf parses all packages of the repository.
func filesOf(t *testing.T, graph Graph) map[string][]file {
	t.Helper()
	files := map[string][]file{}
	for _, pkg := range graph.Ours() {
		parsed, err := parse(pkg)
		if err != nil {
			t.Fatal(err)
		}
		files[pkg.Short()] = parsed
	}
	return files
}

func report(t *testing.T, graph Graph) {
	t.Helper()
	inSource, err := CheckSource(graph.Ours())
	if err != nil {
		t.Fatal(err)
	}
	for _, breach := range slices.Concat(CheckImports(graph), inSource) {
		t.Error(breach)
	}
}
