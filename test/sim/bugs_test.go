package sim

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// found is where a planted bug is found, and the promise that it breaks there.
type found struct {
	seed   uint64
	breaks string
}

// plantedBugs has the bugs that are found, each with a seed that finds it. docs/reliability.md
// has the same table.
func plantedBugs() map[Bug]found {
	return map[Bug]found{
		BugUnfenced:            {0, "G2"},
		BugFreedEarly:          {2, "G5"},
		BugTwice:               {8, "G4"},
		BugLostOutbox:          {8, "G3"},
		BugEarlyAck:            {8, "G3"},
		BugForgotten:           {44, "G3"},
		BugUnpublished:         {1000, "G3"},
		BugUnordered:           {1, "G4"},
		BugOldMemory:           {1008, "G2"},
		BugClock:               {0, "G8"},
		BugPassing:             {1, "G8"},
		BugByLabels:            {1001, "G1"},
		BugAnyNamespace:        {1055, "G1"},
		BugOldCohort:           {1009, "G2"},
		BugLostNomination:      {1001, "G8"},
		BugUnstoredNominations: {1133, "G2"},
		BugForgottenUsage:      {1009, "G3"},
		BugEveryTerm:           {1005, "G3"},
		BugLarger:              {1009, "G1"},
		BugSurplus:             {1009, "G5"},
		BugTakenFirst:          {1011, "G2"},
		BugCramped:             {1044, "G1"},
		BugNotWhole:            {1, "G1"},
		BugGenerous:            {1029, "G6"},
		BugUncompared:          {1102, "G4"},
		BugSameEpoch:           {1013, "G4"},
		BugWatermarkMoves:      {42, "G3"},
		BugLateUncompared:      {1013, "G3"},
		BugUnawaited:           {1118, "G4"},
		BugForgottenHold:       {1017, "G8"},
		BugAnyAttempt:          {1041, "G6"},
		BugImpatient:           {1195, "G3"},
		BugSwallowed:           {1007, "G7"},
		BugBare:                {1002, "G3"},
		BugDropped:             {1002, "G3"},
		BugUnasked:             {1189, "G3"},
		BugLeaseEnds:           {0, "G3"},
		BugDeaf:                {0, "G1"},
		BugForgottenRequest:    {6000, "G8"},
		BugUnlabelled:          {6000, "G4"},
		BugRepeatedSequences:   {6091, "G4"},
	}
}

// TestPlantedBugsAreFound shows that the checkers bite. Each bug is looked for from a
// seed on that is known to have found it, and if the world has changed since, in
// those behind it.
func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	const seeds = 40
	for bug, want := range plantedBugs() {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			for seed := want.seed; seed < want.seed+seeds; seed++ {
				o := Options{Seed: seed, Bug: bug, Script: scriptOf(bug)}
				if r := Run(o); r.Breach != nil {
					t.Logf("found in seed %d after %d events: %.300s", seed, r.Events, r.Breach)
					if seed == want.seed && r.Breach.Promise != want.breaks {
						t.Errorf("in seed %d it breaks %s, not %s: change the table here and in docs/reliability.md", seed, r.Breach.Promise, want.breaks)
					}
					return
				}
			}
			t.Errorf("not found in %d seeds; `go run ./test/sim/run -seeds 1000 -bug %q` says where it is now", seeds, bug)
		})
	}
}

var bugRow = regexp.MustCompile(`^\| (.+) \| (\d+)(?:, with [^|]+)? \| (G\d) \|$`)

// TestThePageHasEachPlantedBug: the table of docs/reliability.md is that of the test.
func TestThePageHasEachPlantedBug(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, is := strings.Cut(string(page), "| planted bug |")
	table, _, ends := strings.Cut(table, "\n\n")
	if !is || !ends {
		t.Fatal("the page has no table of planted bugs")
	}
	rows := map[string]string{}
	for _, line := range strings.Split(table, "\n")[2:] {
		row := bugRow.FindStringSubmatch(line)
		if row == nil {
			t.Errorf("cannot read the row %q", line)
			continue
		}
		rows[row[1]] = row[2] + " " + row[3]
	}
	for _, bug := range Bugs() {
		if _, known := plantedBugs()[bug]; !known {
			t.Errorf("no seed is known for the bug %q", bug)
		}
	}
	for bug, want := range plantedBugs() {
		t.Run(string(bug), func(t *testing.T) {
			if got := rows[string(bug)]; got != fmt.Sprintf("%d %s", want.seed, want.breaks) {
				t.Errorf("the page has %q, want seed %d, which breaks %s", got, want.seed, want.breaks)
			}
		})
	}
	if len(rows) != len(plantedBugs()) {
		t.Errorf("the page has %d bugs, the test %d", len(rows), len(plantedBugs()))
	}
}
