package sim

import (
	"fmt"
	"os"
	"regexp"
	"slices"
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
		BugUnfenced:            {0, "G4"},
		BugFreedEarly:          {2, "G5"},
		BugTwice:               {8, "G4"},
		BugLostOutbox:          {8, "G3"},
		BugEarlyAck:            {8, "G3"},
		BugForgotten:           {44, "G3"},
		BugUnpublished:         {1000, "G3"},
		BugUnordered:           {1, "G4"},
		BugOldMemory:           {1067, "G2"},
		BugClock:               {1, "G8"},
		BugPassing:             {1, "G8"},
		BugByLabels:            {1001, "G1"},
		BugAnyNamespace:        {1003, "G1"},
		BugOldCohort:           {1013, "G2"},
		BugLostNomination:      {1001, "G8"},
		BugUnstoredNominations: {1001, "G2"},
		BugForgottenUsage:      {1009, "G3"},
		BugUnlearned:           {0, "G3"},
		BugEveryTerm:           {1005, "G3"},
		BugLarger:              {1009, "G1"},
		BugSurplus:             {1009, "G5"},
		BugTakenFirst:          {1011, "G2"},
		BugCramped:             {1044, "G1"},
		BugNotWhole:            {1, "G1"},
		BugGenerous:            {1029, "G6"},
		BugUncompared:          {1165, "G3"},
		BugSameEpoch:           {1016, "G2"},
		BugWatermarkMoves:      {53, "G3"},
		BugLateUncompared:      {1022, "G3"},
		BugUnawaited:           {1118, "G4"},
		BugForgottenHold:       {1017, "G8"},
		BugAnyAttempt:          {1041, "G6"},
		BugImpatient:           {1195, "G3"},
		BugSwallowed:           {1007, "G7"},
		BugBare:                {1002, "G3"},
		BugDropped:             {1002, "G3"},
		BugUnreported:          {1002, "G3"},
		BugUnasked:             {1769, "G3"},
		BugLeaseEnds:           {0, "G3"},
		BugDeaf:                {0, "G1"},
		BugForgottenRequest:    {6000, "G8"},
		BugUnlabelled:          {6000, "G4"},
		BugRepeatedSequences:   {1016, "G4"},
		BugHasty:               {5, "G4"},
		BugAgeless:             {6002, "G1"},
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

func thePage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// rowsUnder are the rows of the table whose heading begins like this; none if there is no such
// table.
func rowsUnder(page, heading string) []string {
	_, table, _ := strings.Cut(page, "\n"+heading)
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	return lines[min(2, len(lines)):]
}

var bugRow = regexp.MustCompile(`^\| (.+) \| (\d+)(?:, with [^|]+)? \| (G\d) \|$`)

// TestThePageHasEachPlantedBug: the table of docs/reliability.md is that of the test.
func TestThePageHasEachPlantedBug(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	for _, line := range rowsUnder(thePage(t), "| planted bug |") {
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
	if len(Bugs()) != len(plantedBugs()) {
		t.Errorf("a seed is known for %d bugs, and Bugs lists %d: %q finds those that it lists", len(plantedBugs()), len(Bugs()), "-hunt")
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

// TestEachDefectIsFoundByChance: seeds alone find the planted bugs that stand for the defects of
// docs/reliability.md, those that the page counts as in need of a script excepted.
func TestEachDefectIsFoundByChance(t *testing.T) {
	t.Parallel()
	rows := rowsUnder(thePage(t), "| defect | planted bugs |")
	if len(rows) == 0 {
		t.Fatal("the page has no table of defects")
	}
	for _, row := range rows {
		for _, wrong := range wrongOfDefect(row) {
			t.Errorf("%s: %s", row, wrong)
		}
	}
}

// mostSeed is the end of the seeds in which a bug counts as found by chance: `make sim SEEDS=2000`.
const mostSeed = 2000

// wrongOfDefect is what is not as it should be in a row of the table of defects.
func wrongOfDefect(row string) (wrong []string) {
	_, bugs, is := strings.Cut(strings.Trim(row, "| "), " | ")
	if !is {
		return []string{"the row does not have two columns"}
	}
	stand := 0
	for name := range strings.SplitSeq(bugs, "; ") {
		if strings.Contains(name, "need a script") {
			continue
		}
		stand++
		at, known := plantedBugs()[Bug(name)]
		switch {
		case !known || !slices.Contains(Bugs(), Bug(name)):
			wrong = append(wrong, fmt.Sprintf("%q is no planted bug", name))
		case at.seed >= mostSeed:
			wrong = append(wrong, fmt.Sprintf("%q is found in seed %d, want one below %d", name, at.seed, mostSeed))
		case scriptOf(Bug(name)) != nil:
			wrong = append(wrong, fmt.Sprintf("%q needs a script", name))
		}
	}
	if stand == 0 {
		wrong = append(wrong, "no planted bug stands for the defect")
	}
	return wrong
}

// TestWrongRowsOfDefectsAreFound shows that the check of the table of defects can fail.
func TestWrongRowsOfDefectsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		row, want string // want is a part of what is wrong; empty for nothing
	}{
		"right":                 {fmt.Sprintf("| a full disk | %s; and two more that need a script |", BugDropped), ""},
		"no bug of that name":   {"| a full disk | a message gets lost |", "is no planted bug"},
		"a bug and a sentence":  {fmt.Sprintf("| a full disk | %s. The rest needs real parts |", BugDropped), "is no planted bug"},
		"a bug of a high seed":  {fmt.Sprintf("| a stream | %s; %s |", BugBare, BugUnlabelled), "6000"},
		"a bug with a script":   {fmt.Sprintf("| a stream | %s |", BugDeaf), "needs a script"},
		"only bugs of a script": {"| a stream | two that need a script |", "no planted bug stands"},
		"one column":            {"| a stream |", "two columns"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := strings.Join(wrongOfDefect(test.row), "\n")
			if (wrong != "") != (test.want != "") || !strings.Contains(wrong, test.want) {
				t.Errorf("wrong of %q: %q, want %q", test.row, wrong, test.want)
			}
		})
	}
}
