package chaos

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/pkg/localcluster"
	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/local"
)

var (
	runs  = flag.Int("runs", 0, "cause every fault so many times; 0 for the short run")
	table = flag.String("table", "", "write the table into this page")
)

// binaries is where make build puts them.
const binaries = "../../bin"

const (
	// apiAway is how long the API server is away in the long run.
	apiAway = time.Minute
	// shortTrials is how many of the faults the short run has, each once: two leaders
	// at once twice over, commits of which nobody hears, and Postgres down.
	shortTrials = 4
)

// TestChaos is the short run, or with -runs the long one (`make chaos`).
func TestChaos(t *testing.T) {
	required := os.Getenv("MUSTER_REQUIRE_SERVICES") != "" || *runs > 0
	if missing := local.Missing(binaries); len(missing) > 0 {
		if required {
			t.Fatalf("%v are not built: run `make build bin/nats-server`", missing)
		}
		t.Skipf("%v are not built: run `make build bin/nats-server`", missing)
	}
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Name: fmt.Sprintf("chaos-%d", os.Getpid()), Fleet: "p3"})
	if errors.Is(err, localcluster.ErrNotBuilt) && !required {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	trials, times := suite.Trials(apiAway), *runs
	if times == 0 {
		trials, times = trials[:shortTrials], 1
	}
	began := time.Now()
	outcomes := suite.Chaos(t, &local.Provider{Binaries: binaries, Cluster: cluster}, trials, times)
	text := Table(outcomes)
	fmt.Printf("%s\n%s in %s\n", text, plural(outcomes), time.Since(began).Round(time.Second))
	if *table != "" {
		if err := Write(*table, text); err != nil {
			t.Error(err)
		}
	}
}

func plural(outcomes []suite.Outcome) string {
	runs, gangs := 0, 0
	for _, o := range outcomes {
		runs, gangs = runs+o.Runs, gangs+o.Gangs
	}
	return fmt.Sprintf("%d faults in %d runs, %d gangs", len(outcomes), runs, gangs)
}

// TestTable shows what a table says of runs that went well and of others.
func TestTable(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+beginMark+"old\n"+endMark+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := Table([]suite.Outcome{
		{Trial: suite.Trial{Parts: []string{"intake"}, Fault: suite.Killed, For: time.Second}, Runs: 2, Gangs: 20,
			Recovered: []time.Duration{2 * time.Second, time.Second}},
		{Trial: suite.Trial{Parts: []string{"postgres"}, Fault: suite.Terminated}, Runs: 1, Gangs: 10,
			Recovered: []time.Duration{time.Second}, Broken: []string{"a | gang was lost", "and another"}},
		{Trial: suite.Trial{Parts: []string{"dispatcher"}, Fault: suite.Paused}, Runs: 1},
	})
	if err := Write(page, text); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + beginMark + `| fault | runs | gangs | result | recovery: median, longest |
|---|---|---|---|---|
| intake killed for 1s | 2 | 20 | nothing lost, doubled, leaked or over-committed | 2.0 s, 2.0 s |
| postgres ending all connections | 1 | 10 | **2 breaches**: a / gang was lost | 1.0 s, 1.0 s |
| dispatcher paused | 1 | 0 | **did not recover** | - |
` + endMark + "after\n"
	if string(got) != want {
		t.Errorf("page is\n%s\nwant\n%s", got, want)
	}
}
