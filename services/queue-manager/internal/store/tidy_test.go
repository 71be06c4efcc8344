package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// What was in quarantine and does not count any more is removed: an hour after the last refusal,
// unless it is kept until an operator releases it. That a workload has ended ends that, too.
func TestQuarantineIsTidied(t *testing.T) {
	t.Parallel()
	l := open(t)
	gang := admitted(1, "gang", 1, 1, 100)
	l.commit(t, gang)
	live, ended := gang.Added[0].ID, workload.ID("00000000-0000-4000-8000-000000000001")
	node := state.Quarantined{Level: state.QuarantineFrozen, Why: "no node"}
	node.Node.Cluster, node.Node.Name = "c", "n"
	later := node
	later.Node.Name, later.Until = "later", time.Now().Add(time.Minute)
	if err := l.Quarantine(t.Context(), l.term.Epoch, []state.Quarantined{
		{Workload: live, Level: state.QuarantineFrozen, Why: "it says no"}, {Workload: ended, Level: state.QuarantineFailed, Why: "it says no"}, node, later,
	}); err != nil {
		t.Fatal(err)
	}
	kept := func() (names []string) {
		t.Helper()
		if err := l.Tidy(t.Context(), l.term.Epoch); err != nil {
			t.Fatal(err)
		}
		rows, err := l.connect(t).Query(t.Context(), `SELECT name FROM quarantine ORDER BY name`)
		if err != nil {
			t.Fatal(err)
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	all := []string{string(ended), string(live), "later", "n"}
	slices.Sort(all)
	if got := kept(); !slices.Equal(got, all) {
		t.Errorf("within an hour there are %q, want %q", got, all)
	}
	if _, err := l.connect(t).Exec(t.Context(), `ALTER TABLE quarantine DISABLE TRIGGER fenced; UPDATE quarantine SET since = now() - interval '61 minutes'`); err != nil {
		t.Fatal(err)
	}
	if got, want := kept(), []string{string(live), "n"}; !slices.Equal(got, want) {
		t.Errorf("an hour later there are %q, want %q", got, want)
	}
	if found, err := l.Quarantined(t.Context()); err != nil || len(found) != 2 {
		t.Errorf("in quarantine are %+v, %v", found, err)
	}
}
