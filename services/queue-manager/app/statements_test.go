package app_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// written finds what a text of SQL writes.
var written = regexp.MustCompile(`\b(INSERT INTO|UPDATE|DELETE FROM|SELECT keep_partitions_of)[ (]([a-z_$0-9]+)`)

// statements are all that the sources of queue-manager write, as "INSERT table".
func statements(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == "ledgerbench" {
			return errorOr(err, filepath.SkipDir)
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if text, is := node.(*ast.BasicLit); is && text.Kind == token.STRING {
				for _, match := range written.FindAllStringSubmatch(text.Value, -1) {
					found[strings.Fields(match[1])[0]+" "+match[2]] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}

func errorOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// refuseAll has the database refuse statements of a kind, whatever they would change.
func (w *world) refuseAll(statement string) {
	w.t.Helper()
	verb, table, _ := strings.Cut(statement, " ")
	if verb == "SELECT" {
		w.sql("REVOKE EXECUTE ON FUNCTION keep_partitions_of FROM PUBLIC, muster_queue_manager")
		return
	}
	w.sql(fmt.Sprintf(`CREATE FUNCTION refuse_all_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'XX123'; END $$;
		CREATE TRIGGER refuse_all_for_test BEFORE %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION refuse_all_for_test()`, verb, table))
}

// notes are statements that concern no workload and no node. When the database refuses
// them to all, for good, decisions go on.
func notes() []string {
	return []string{
		"DELETE outbox", "INSERT streams", "INSERT undelivered", // of the relay
		"INSERT decisions", "INSERT bases", // for replays
		"INSERT quarantine",
		"INSERT queues", "DELETE queues", "INSERT policy", "UPDATE quota_usage", "INSERT quota_usage", "DELETE quota_usage", "UPDATE reservations", "DELETE past_usage", "DELETE learned", // settings
		"INSERT learned",                                                    // of the cost of evictions
		"SELECT $1", "DELETE commits", "DELETE shapes", "DELETE quarantine", // tidying
		"INSERT estimates", "DELETE estimates", "INSERT estimate_scores", "DELETE estimate_scores", // estimates of starts
		"INSERT budget_usage", "DELETE budget_usage",
	}
}

// elsewhere are statements whose refusals are tried by other tests, or are of all that
// Muster does.
func elsewhere() map[string]string {
	return map[string]string{
		"INSERT applied":         "TestAConfigurationThatIsRefusedEndsNoTerm",
		"DELETE applied":         "the same transaction",
		"INSERT applied_changes": "the same transaction",
		"INSERT past_usage":      "TestPastUsageThatIsRefusedEndsNoTerm",
		"UPDATE leader":          "TestWhatIsRefusedToAllIsNobodysFault: without it there is no leader",
	}
}

// Each statement of queue-manager is known to be refused by a test, with what comes of
// it.
func TestEveryStatementMayBeRefused(t *testing.T) {
	t.Parallel()
	known := elsewhere()
	for _, statement := range notes() {
		known[statement] = "below"
	}
	for _, refusals := range []map[string]refusal{refusalsOfOne(), refusalsOfNode()} {
		for name, c := range refusals {
			for verb := range strings.SplitSeq(c.events, " OR ") {
				known[strings.Fields(verb)[0]+" "+c.table] = name
			}
		}
	}
	found := statements(t)
	for _, statement := range found {
		if known[statement] == "" {
			t.Errorf("%s: no test has the database refuse it", statement)
		}
	}
	for statement, test := range known {
		if !slices.Contains(found, statement) && !strings.HasPrefix(statement, "UPDATE nodes") {
			t.Errorf("%s, of which %q, is written nowhere", statement, test)
		}
	}
}

// What the database refuses of Muster's own notes, for good and to all, ends no term.
func TestNotesThatAreRefusedEndNoTerm(t *testing.T) {
	t.Parallel()
	for _, statement := range notes() {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("a", 2)
			w.others("before")
			w.stop()
			w.refuseAll(statement)
			w.countTerms()
			w.start()
			w.others("first")
			w.others("second")
			if terms := w.terms(); terms > fewTerms {
				t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
			}
			after := w.terms()
			w.others("third")
			if terms := w.terms() - after; terms > 0 {
				t.Errorf("there were %d terms more later on", terms)
			}
		})
	}
}
