package app_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// refuseToRead has the database refuse to read the row of a workload in a table, for
// good, as when its file is damaged. Rows are found by indexes, as in a large table.
func (w *world) refuseToRead(table string, id workload.ID) {
	w.t.Helper()
	w.sql(fmt.Sprintf(`CREATE FUNCTION unread_for_test(uuid) RETURNS boolean LANGUAGE plpgsql COST 100000 AS $$
		BEGIN IF $1 = '%[2]s' THEN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'XX001'; END IF; RETURN true; END $$;
		ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY;
		CREATE POLICY all_for_test ON %[1]s FOR ALL USING (true) WITH CHECK (true);
		CREATE POLICY unread_for_test ON %[1]s AS RESTRICTIVE FOR SELECT USING (unread_for_test(id));
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET enable_seqscan = off', current_database()); END $$`, table, id))
}

// What the database has of one workload cannot be read: whatever is submitted or asked
// for that one is answered or kept with the reason, and everybody else goes on.
func TestWhatCannotBeReadOfOneConcernsItAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	bad := w.submit(gangOf("bad", "default", 3)) // more than there is
	w.waits(bad, workload.ReasonFit)
	w.cancel("default", bad)
	w.phase(bad, workload.Cancelled)
	w.others("later") // the last row is read by each term
	w.refuseToRead("archive", bad)
	w.countTerms()
	w.submit(gangOf("bad", "default", 1))
	if reason := w.rejected(bad).Reason; reason.Kind != workload.ReasonNotStorable {
		t.Errorf("it was rejected because of %+v", reason)
	}
	w.others("first")
	w.cancel("default", bad)
	w.others("second")
	if terms := w.terms(); terms > fewTerms {
		t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
	}
	w.deadLettered(2)
	after := w.terms()
	w.others("third")
	if terms := w.terms() - after; terms > 0 {
		t.Errorf("there were %d terms more later on", terms)
	}
}

// The row of a live workload cannot be read: it stays as it is, what it holds stays charged, and
// everybody else goes on. Released after the repair, it goes on, too.
func TestALiveRowThatCannotBeReadConcernsItAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workers int
		holds   bool
	}{
		"one that waits": {workers: 3}, // more than there is
		"one that runs":  {workers: 1, holds: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("a", 2)
			bad := w.submit(gangOf("bad", "default", c.workers))
			if c.holds {
				w.started(bad, 1)
			} else {
				w.waits(bad, workload.ReasonFit)
			}
			w.stop()
			w.refuseToRead("workloads", bad)
			w.countTerms()
			w.start()
			w.others("first")
			w.metric("muster_quarantined", 1)
			w.submit(gangOf("bad", "default", 1))
			if reason := w.rejected(bad).Reason; reason.Kind != workload.ReasonNotStorable {
				t.Errorf("it was rejected because of %+v", reason)
			}
			w.others("second")
			if c.holds {
				w.waits(w.submit(gangOf("large", "default", 2)), workload.ReasonFit)
			}
			if terms := w.terms(); terms > fewTerms {
				t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
			}
			w.sql(`DROP POLICY unread_for_test ON workloads`)
			if _, err := app.Unquarantine(w.ctx, w.config.DatabaseURL, []string{string(bad)}); err != nil {
				t.Fatal(err)
			}
			w.metric("muster_quarantined", 0)
			w.cancel("default", bad)
			if c.holds {
				w.command(bad, event.Absent, 1)
			} else {
				w.phase(bad, workload.Cancelled)
			}
		})
	}
}

// deadLettered waits until that number of messages are dead letters.
func (w *world) deadLettered(want int) {
	w.t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		dead, err := w.bus.DeadLetters(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(dead) == want {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			w.t.Fatalf("%d messages were given up, want %d: %+v", len(dead), want, dead)
		}
	}
}

// What the database refuses to read to all is the fault of no message: none is given up,
// and when it is over everything goes on.
func TestWhatCannotBeReadAtAllIsNobodysFault(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"archive", "nodes", "reservations", "workloads", "shapes", "queues", "streams", "quarantine"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("a", 2)
			w.others("first")
			w.countTerms()
			w.sql(fmt.Sprintf("REVOKE SELECT ON %s FROM muster_queue_manager", table))
			w.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") // the next term reads all
			id := w.submit(gangOf("gang", "default", 1))
			const failures = 3
			deadline := time.After(patience)
			again := time.NewTicker(50 * time.Millisecond)
			defer again.Stop()
			for w.terms() < failures {
				select {
				case <-deadline:
					t.Fatalf("only %d terms", w.terms())
				case <-again.C:
				}
			}
			w.sql(fmt.Sprintf("GRANT SELECT ON %s TO muster_queue_manager", table))
			w.command(id, event.Present, 1)
			if dead, err := w.bus.DeadLetters(w.ctx); err != nil || len(dead) > 0 {
				t.Errorf("given up were %+v, %v", dead, err)
			}
		})
	}
}
