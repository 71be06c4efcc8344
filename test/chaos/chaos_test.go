package chaos

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/disk"
	"muster.dev/muster/test/suite/kept"
	"muster.dev/muster/test/suite/local"
)

var (
	runs  = flag.Int("runs", 0, "runs of every fault; 0 for the short run")
	keep  = flag.String("keep", "", "add the outcomes to those in this `file`; of the faults, do only the runs that it lacks")
	table = flag.String("table", "", "write the table of all outcomes that are kept into this page")
	seed  = flag.Uint64("seed", 0, "of the sample, the pairs and the load; 0 takes that of MUSTER_CHAOS_SEED, or draws one")
	pairs = flag.Int("pairs", 0, "number of pairs of faults at the same time, drawn at random, beside the single ones")
	mixed = flag.Int("mixed-pairs", 0, "number of pairs of which one is a fault of machines or of the configuration, drawn at random; for the long run")
	gangs = flag.Int("gangs", 0, "of each run; 0 for 50, and for 8 in the short run")
	nats  = flag.Int("nats", 1, "number of NATS servers; several are a cluster with TLS, and have a table of their own")
	only  = flag.String("only", "", "regular expression of the names of faults")
	lane  = flag.String("lane", "1/1", "which of how many lanes this is, which share the faults, such as 2/3")
)

func TestMain(m *testing.M) {
	disk.Serve()
	os.Exit(m.Run())
}

// binaries is where make build puts them.
const binaries = "../../bin"

const (
	// apiAway is how long the API server is away in the long run.
	apiAway = 20 * time.Second
	// The short run is a random sample: a fault of each kind and a pair, each once. The
	// API server is away for less, and no fault of the sample lasts longer than
	// shortLasts.
	shortPairs, shortAway, shortLasts = 1, 10 * time.Second, 10 * time.Second
	longGangs, shortGangs             = 50, 8
)

// TestChaos is the short run, or with -runs the long one (`make chaos`).
func TestChaos(t *testing.T) {
	cluster := startCluster(t, "chaos", "fleet.yaml")
	plan := drawn(t)
	plan.Done = func(o suite.Outcome) {
		if err := publish(rows([]suite.Outcome{o})); err != nil {
			t.Error(err)
		}
	}
	if *keep != "" {
		earlier, err := kept.Read[Row](*keep)
		if err == nil {
			err = publish(nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		plan.Before = runsOf(earlier)
	}
	began := time.Now()
	done := rows(suite.Chaos(t, &local.Provider{Binaries: binaries, Cluster: cluster}, plan))
	fmt.Printf("%s\n%s in %s\n", Table(done), plural(done), time.Since(began).Round(time.Second))
}

// page has the tables of what is kept.
const page = "../../docs/reliability.md"

// pageWith is a page with the table of a number of NATS servers.
func pageWith(file string, servers int) kept.Page {
	if servers > 1 {
		return kept.Page{File: file, Table: "chaos of three NATS servers"}
	}
	return kept.Page{File: file, Table: "chaos"}
}

// publish adds rows to the file of those that are kept, and makes the table of all.
func publish(added []Row) error {
	if *keep == "" {
		return nil
	}
	return kept.Change(*keep, func(all []Row) []Row { return merged(all, added) }, pageWith(*table, *nats), Table)
}

// TestTheTables: the page has the tables of the outcomes that are kept.
func TestTheTables(t *testing.T) {
	t.Parallel()
	for file, servers := range map[string]int{"outcomes.json": 1, "outcomes-of-three.json": 3} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			all, err := kept.Read[Row](file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := kept.Table(pageWith(page, servers))
			if diff := cmp.Diff(want, Table(all)); err != nil || diff != "" {
				t.Errorf("%v; `make chaos KEEP=test/chaos/%s` writes it (-page +file):\n%s", err, file, diff)
			}
		})
	}
}

// startCluster starts a dev cluster for processes, if all of it is built.
func startCluster(t *testing.T, name, fleet string) *devcluster.Cluster {
	t.Helper()
	required := os.Getenv("MUSTER_REQUIRE_SERVICES") != "" || *runs > 0
	if missing := local.Missing(binaries); len(missing) > 0 {
		if required {
			t.Fatalf("%v are not built: run `make build bin/nats-server`", missing)
		}
		t.Skipf("%v are not built: run `make build bin/nats-server`", missing)
	}
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{Name: fmt.Sprintf("%s-%d", name, os.Getpid()), Fleet: fleet})
	if errors.Is(err, devcluster.ErrNotBuilt) && !required {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	return cluster
}

func plural(rows []Row) string {
	runs, gangs := 0, 0
	for _, r := range rows {
		runs, gangs = runs+r.Runs, gangs+r.Gangs
	}
	return fmt.Sprintf("%d faults in %d runs, %d gangs", len(rows), runs, gangs)
}

// TestTable shows what a table says of runs that went well and of others.
func TestTable(t *testing.T) {
	t.Parallel()
	got := Table(rows([]suite.Outcome{
		{Trial: suite.Trial{Parts: []string{"intake"}, Fault: suite.Killed, For: time.Second}, Runs: 2, Gangs: 20,
			Recovered: []time.Duration{2 * time.Second, time.Second}},
		{Trial: suite.Trial{Parts: []string{"postgres"}, Fault: suite.Terminated}, Runs: 1, Gangs: 10,
			Recovered: []time.Duration{time.Second}, Broken: []string{"a | gang was lost", "and another"}},
		{Trial: suite.Trial{Parts: []string{"dispatcher"}, Fault: suite.Paused}, Runs: 1},
	}))
	want := `| fault | runs | gangs | result | recovery: median, longest |
|---|---|---|---|---|
| intake killed for 1s | 2 | 20 | nothing lost, doubled, leaked or over-committed | 2.0 s, 2.0 s |
| postgres ending all connections | 1 | 10 | **breaches: 2**: a / gang was lost | 1.0 s, 1.0 s |
| dispatcher paused | 1 | 0 | **1 of 1 did not recover** | - |
`
	if got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
}
