package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/kept"
	"muster.dev/muster/test/suite/local"
)

const (
	// olderGangs is the load of each restore; one restore of olderPurged loses what
	// NATS keeps of submissions, too.
	olderGangs, olderPurged = 16, 4
)

// TestPostgresIsRestoredToAnOlderState restores a physical backup under load: once, or with
// -runs times, with -gangs each, after those that -keep has.
func TestPostgresIsRestoredToAnOlderState(t *testing.T) {
	plan := suite.OlderPlan{Runs: max(*runs, 1), Gangs: *gangs, Seed: seeded(t), Purged: olderPurged}
	if *keep != "" {
		earlier, err := kept.Read[suite.Restored](*keep)
		if err == nil {
			err = keepRestores()
		}
		if err != nil {
			t.Fatal(err)
		}
		plan.Before = len(earlier)
	}
	if plan.Gangs == 0 {
		plan.Gangs = olderGangs
	}
	plan.Done = func(r suite.Restored) {
		if err := keepRestores(r); err != nil {
			t.Error(err)
		}
	}
	cluster := startCluster(t, "older", "p3")
	began := time.Now()
	restores := suite.RestoreOlderState(t, &local.Provider{Binaries: binaries, Cluster: cluster}, plan)
	if len(restores) < plan.Runs {
		t.Errorf("%d restores, want %d", len(restores), plan.Runs)
	}
	fmt.Printf("seed %d, %s\n%s", plan.Seed, time.Since(began).Round(time.Second), restoreTable(restores))
}

// keepRestores adds restores to those that are kept, and makes the table of all.
func keepRestores(added ...suite.Restored) error {
	if *keep == "" {
		return nil
	}
	return kept.Change(*keep, func(all []suite.Restored) []suite.Restored { return append(all, added...) }, restorePage(*table), restoreTable)
}

// restorePage is a page with the table of restores.
func restorePage(file string) kept.Page { return kept.Page{File: file, Table: "restores"} }

// restoreTable is a row for the restores after which NATS had what it keeps of submissions,
// and one for the others.
func restoreTable(all []suite.Restored) string {
	var b strings.Builder
	b.WriteString("| `MUSTER_KEPT` | restores | gangs | result | lost with the database | a new gang ran after: median, longest | nothing unadmitted ran after: median, longest |\n|---|---|---|---|---|---|---|\n")
	for _, purged := range []bool{false, true} {
		var count, gangs, lost, named int
		var recovered, cleared []time.Duration
		var broken []string
		for _, r := range all {
			if r.Purged != purged {
				continue
			}
			count, gangs, lost, named = count+1, gangs+r.Gangs, lost+r.Lost, named+r.Named
			recovered, cleared, broken = append(recovered, r.Recovered), append(cleared, r.Cleared), append(broken, r.Broken...)
		}
		if count == 0 {
			continue
		}
		stream, result := "there", "nothing lost without a name, doubled, leaked, over-committed, or unadmitted after 60 s"
		if purged {
			stream = "purged, too"
		}
		if len(broken) > 0 {
			result = fmt.Sprintf("**breaches: %d**: %s", len(broken), strings.ReplaceAll(broken[0], "|", "/"))
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %d, %d of them named | %s | %s |\n",
			stream, count, gangs, result, lost, named, kept.MedianAndLongest(recovered), kept.MedianAndLongest(cleared))
	}
	return b.String()
}

// TestTheTableOfRestores: the page has the table of the restores that are kept.
func TestTheTableOfRestores(t *testing.T) {
	t.Parallel()
	all, err := kept.Read[suite.Restored]("restores.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := kept.Table(restorePage(page))
	if got := restoreTable(all); err != nil || got != want {
		t.Errorf("%v; the table of restores.json is\n%s\nthe page has\n%s\nrun `make failovers`", err, got, want)
	}
}

func TestRestoreTable(t *testing.T) {
	t.Parallel()
	got := strings.Split(restoreTable([]suite.Restored{
		{Gangs: 17, Lost: 6, Named: 1, Recovered: time.Second, Cleared: 3 * time.Second},
		{Gangs: 17, Lost: 4, Recovered: 2 * time.Second},
		{Gangs: 17, Purged: true, Lost: 6, Named: 6, Recovered: time.Second, Broken: []string{"a gang was lost"}},
	}), "\n")
	for _, want := range []string{
		"| there | 2 | 34 | nothing lost without a name, doubled, leaked, over-committed, or unadmitted after 60 s | 10, 1 of them named | 2.0 s, 2.0 s | 3.0 s, 3.0 s |",
		"| purged, too | 1 | 17 | **breaches: 1**: a gang was lost | 6, 6 of them named | 1.0 s, 1.0 s | 0.0 s, 0.0 s |",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no row\n%s\nin\n%s", want, strings.Join(got, "\n"))
		}
	}
}
