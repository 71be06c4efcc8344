package state

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/spec/workload"
)

// Only setPhase assigns a phase.
func TestPhaseIsAssignedInOnePlace(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	assigned := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if !is {
				continue
			}
			for _, at := range phaseAssignments(function) {
				assigned++
				if function.Name.Name != "setPhase" {
					t.Errorf("%s: %s assigns a phase; use transition", set.Position(at), function.Name.Name)
				}
			}
		}
	}
	if assigned != 1 {
		t.Errorf("phases are assigned in %d places, want 1", assigned)
	}
}

// phaseAssignments returns where a function assigns a field Phase, or the whole record
// of an entry.
func phaseAssignments(function *ast.FuncDecl) (places []token.Pos) {
	ast.Inspect(function, func(n ast.Node) bool {
		assignment, is := n.(*ast.AssignStmt)
		if !is {
			return true
		}
		for _, left := range assignment.Lhs {
			if text := types.ExprString(left); strings.HasSuffix(text, ".Phase") || text == "e.Record" {
				places = append(places, left.Pos())
			}
		}
		return true
	})
	return places
}

func TestTransition(t *testing.T) {
	t.Parallel()
	for _, from := range workload.Phases() {
		for _, to := range workload.Phases() {
			t.Run(string(from)+" to "+string(to), func(t *testing.T) {
				t.Parallel()
				s, now := newTestState(), time.Unix(1_000_000, 0)
				e := &entry{Record: workload.Record{Workload: workload.Workload{ID: "w", Queue: "loose"}, Phase: from, Attempt: 2}}
				reason := &workload.Reason{Message: "because"}
				s.transition(e, to, reason, now)
				if e.Phase != to || e.Reason != reason {
					t.Errorf("the workload is %s with reason %v, want %s with the given one", e.Phase, e.Reason, to)
				}
				if to.Final() != e.Times.Finished.Equal(now) {
					t.Errorf("Finished is %s", e.Times.Finished)
				}
				changes := s.Flush()
				if len(changes.History) != 1 || changes.History[0].Phase != to || len(changes.Messages) != 1 {
					t.Errorf("recorded %v with %d events, want one entry and one event", changes.History, len(changes.Messages))
				}
				legal := from.MayBecome(to) || from == workload.Cancelling && to == workload.Cancelling
				var want []IllegalTransition
				if !legal {
					want = []IllegalTransition{{Workload: "w", Attempt: 2, From: from, To: to, At: now}}
				}
				if got := s.DrainIllegalTransitions(); !slices.Equal(got, want) {
					t.Errorf("reported %v, want %v", got, want)
				}
				if again := s.DrainIllegalTransitions(); again != nil {
					t.Errorf("reported %v once more", again)
				}
			})
		}
	}
}

// Whatever comes, each recorded change of a phase is one that MayBecome allows, and
// none is reported as illegal.
func TestEveryRecordedTransitionIsLegal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, now := newTestState(), time.Unix(1_000_000, 0)
		last := map[workload.ID]HistoryRow{}
		for seq := range uint64(rapid.IntRange(1, 100).Draw(t, "inputs")) {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			drawInput(t, seq+1)(s, now)
			if rapid.IntRange(0, 3).Draw(t, "decide") > 0 {
				s.Decide(now)
			}
			for _, row := range s.Flush().History {
				before, known := last[row.Workload]
				began := before.Phase.Final() && row.Phase == workload.Queued && row.Attempt == 1 // submitted again
				if known && before.Phase != row.Phase && !before.Phase.MayBecome(row.Phase) && !began {
					t.Fatalf("workload %s went from %s to %s", row.Workload, before.Phase, row.Phase)
				}
				last[row.Workload] = row
			}
			if illegal := s.DrainIllegalTransitions(); len(illegal) > 0 {
				t.Fatalf("illegal transitions: %v", illegal)
			}
		}
	})
}

// The phases in the package comment are those of MayBecome.
func TestDocumentedPhases(t *testing.T) {
	t.Parallel()
	parsed, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[workload.Phase][]workload.Phase{}
	for line := range strings.Lines(parsed.Doc.Text()) {
		if from, to, is := strings.Cut(line, "->"); is {
			for phase := range strings.SplitSeq(to, ",") {
				from := workload.Phase(strings.TrimSpace(from))
				documented[from] = append(documented[from], workload.Phase(strings.TrimSpace(phase)))
			}
		}
	}
	for _, from := range workload.Phases() {
		for _, to := range workload.Phases() {
			if got, want := slices.Contains(documented[from], to), from.MayBecome(to); got != want {
				t.Errorf("%s -> %s is documented: %t, want %t", from, to, got, want)
			}
		}
	}
}
