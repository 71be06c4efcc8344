package arch

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSequentialPackages: packages whose tests run without the race detector start no
// goroutine.
func TestSequentialPackages(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(root, "test", "run.sh"))
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := sequential(script)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := Load(root, false, "work")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, pkg := range graph.Ours() {
		if !pattern.MatchString(pkg.ImportPath) {
			continue
		}
		found++
		files, err := parse(pkg)
		if err != nil {
			t.Fatal(err)
		}
		for _, breach := range concurrency(pkg, files) {
			t.Error(breach)
		}
	}
	if found == 0 {
		t.Errorf("no package matches %s", pattern)
	}
}

func TestConcurrencyIsFound(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "p.go", `package p

import "sync/atomic"

func f(n *atomic.Int64) { go n.Add(1) }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := concurrency(&Package{ImportPath: prefix + "pkg/p"}, []file{{"p.go", set, syntax}})
	want := []string{
		"pkg/p/p.go imports sync/atomic: test/run.sh takes it for sequential",
		"pkg/p/p.go:5 starts a goroutine: test/run.sh takes it for sequential",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
