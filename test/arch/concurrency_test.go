package arch

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The race detector runs in the tests of each package of pkg and services that has work for
// it, and of no other; and in suites that have all services in their process.
func TestPackagesWithTheRaceDetector(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "test", "raced.sh"))
	command.Env = append(os.Environ(), "RACE=")
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(output))
	graph, err := workspace()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{prefix + "test/clusters", prefix + "test/outage"}
	for _, pkg := range graph.Ours() {
		if !in(pkg, []string{"pkg", "services"}) || in(pkg, support()) {
			continue
		}
		files, err := parse(pkg)
		if err != nil {
			t.Fatal(err)
		}
		places := concurrency(pkg, files)
		if len(places) > 0 {
			want = append(want, pkg.ImportPath)
		}
		if is := slices.Contains(listed, pkg.ImportPath); is != (len(places) > 0) {
			t.Errorf("test/raced.sh lists %s: %t; it has concurrency in %q", pkg.Short(), is, places)
		}
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("test/raced.sh lists\n%q, want\n%q", listed, want)
	}
	for _, service := range []string{"intake", "capacity-watcher", "queue-manager", "dispatcher"} {
		app := prefix + "services/" + service + "/app"
		if chain := graph.Chain(prefix+"test/stack", func(path string) bool { return path == app }); chain == nil {
			t.Errorf("test/stack, which these suites start, does not have %s in its process", service)
		}
	}
}

func TestConcurrencyIsFound(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "p.go", `package p

import (
	"sync"
	"sync/atomic"
	"time"
)

func f(n *atomic.Int64) { go n.Add(1) }

func g() { time.AfterFunc(time.Second, func() {}) }

func h(m *sync.Mutex, once *sync.Once) { once.Do(m.Lock) }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := concurrency(&Package{ImportPath: prefix + "pkg/p"}, []file{{"p.go", set, syntax}})
	want := []string{
		"pkg/p/p.go imports sync/atomic",
		"pkg/p/p.go:9 starts a goroutine",
		"pkg/p/p.go:11 starts a timer",
		"pkg/p/p.go:13 uses sync.Mutex",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
