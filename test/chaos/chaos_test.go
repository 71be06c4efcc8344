package chaos

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/localcluster"
	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/local"
)

var (
	runs  = flag.Int("runs", 0, "cause every fault so many times; 0 for the short run")
	table = flag.String("table", "", "write the table into this page")
	seed  = flag.Uint64("seed", 0, "of the sample, the pairs and the load; 0 draws one")
	pairs = flag.Int("pairs", 0, "so many pairs of faults at the same time, drawn at random, beside the single ones")
	gangs = flag.Int("gangs", 0, "of each run; 0 for 50, and for 8 in the short run")
	only  = flag.String("only", "", "regular expression of the names of faults")
)

// binaries is where make build puts them.
const binaries = "../../bin"

const (
	// apiAway is how long the API server is away in the long run.
	apiAway = time.Minute
	// The short run has so many faults, each once: the first ones, or with -seed a
	// random sample with a pair. The API server is away for less.
	shortTrials, shortPairs, shortAway = 4, 1, 10 * time.Second
	longGangs, shortGangs              = 50, 8
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
	plan := drawn(t)
	began := time.Now()
	outcomes := suite.Chaos(t, &local.Provider{Binaries: binaries, Cluster: cluster}, plan)
	text := Table(outcomes)
	fmt.Printf("%s\n%s in %s\n", text, plural(outcomes), time.Since(began).Round(time.Second))
	if *table != "" && *only == "" { // a part is no table
		if err := Write(*table, text); err != nil {
			t.Error(err)
		}
	}
}

// drawn is what the flags say. The same seed draws the same.
func drawn(t *testing.T) suite.Plan {
	t.Helper()
	sampled := *seed != 0 || *runs > 0
	if *seed == 0 {
		*seed = rand.Uint64()>>32 + 1
	}
	fmt.Printf("seed %d: `go test ./test/chaos -run TestChaos -args -seed %d` with the same other flags draws the same\n", *seed, *seed)
	random := rand.New(rand.NewPCG(*seed, 1))
	plan := suite.Plan{Runs: *runs, Gangs: *gangs, Seed: *seed}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		t.Fatalf("only %q: %v", *only, err)
	}
	long, count, away := *runs > 0, *pairs, apiAway
	if !long {
		plan.Runs, away = 1, shortAway
		if count == 0 {
			count = shortPairs
		}
	}
	if plan.Gangs == 0 {
		plan.Gangs = shortGangs
		if long {
			plan.Gangs = longGangs
		}
	}
	all := suite.Trials(away)
	drawnPairs := suite.Pairs(all, count, random)
	if !long && *only == "" {
		if sampled {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		} else {
			drawnPairs = nil
		}
		all = all[:shortTrials]
	}
	for _, trial := range slices.Concat(all, drawnPairs) {
		if wanted.MatchString(trial.String()) {
			plan.Trials = append(plan.Trials, trial)
		}
	}
	return plan
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
