package app_test

import (
	"fmt"
	"net/url"
	"testing"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// older has queue-manager go on with a copy of its database that misses what lost does.
func (w *world) older(lost func()) {
	w.t.Helper()
	w.stop()
	older := w.copied("_older")
	w.start()
	lost()
	w.stop()
	owner, err := url.Parse(w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	owner.Path += "_older"
	w.ownerURL, w.config.DatabaseURL = owner.String(), older
}

// lostTime is what happens to the workload bad before a copy of the database is made and after
// it, what the copy refuses of it then, what comes of that, and what once it is refused no more.
type lostTime struct {
	before, lost                    func(*world)
	table, events, condition, state string
	want, recovered                 func(*world)
}

func lostTimes() map[string]lostTime {
	bad := event.WorkloadID("test", "bad")
	is := func(column string) string { return fmt.Sprintf("%s = '%s'", column, bad) }
	wait := func(w *world) {
		w.submit(gangOf("bad", "default", 3))
		w.waits(bad, workload.ReasonFit)
	}
	run := func(w *world) {
		w.submit(gangOf("bad", "default", 1))
		w.started(bad, 1)
	}
	admit := func(w *world) {
		w.node("b", 4)
		w.command(bad, event.Present, 1)
	}
	end := func(w *world) {
		w.cancel("default", bad)
		w.command(bad, event.Absent, 1)
		w.goneAs(bad, 1)
		w.phase(bad, workload.Cancelled)
	}
	removed := func(w *world) {
		w.t.Helper()
		w.command(bad, event.Absent, 1)
		w.goneAs(bad, 1)
		w.command(bad, event.Present, 2)
	}
	ended := func(w *world) {
		w.t.Helper()
		w.command(bad, event.Forgotten, 1)
	}
	failed := func(w *world) {
		w.t.Helper()
		if e := w.phase(bad, workload.Failed); e.Reason == nil || e.Reason.Kind != workload.ReasonNotStorable {
			w.t.Errorf("it failed because of %+v", e.Reason)
		}
		w.command(bad, event.Absent, 1)
	}
	names := fmt.Sprintf("position('%s' IN convert_from(NEW.message, 'UTF8')) > 0", bad)
	return map[string]lostTime{
		"a message about one that was admitted":  {wait, admit, "outbox", "INSERT", names, "XX000", nil, removed},
		"the state of one that was admitted":     {wait, admit, "workloads", "UPDATE", is("NEW.id"), "XX123", failed, nil},
		"a line of history about one that ended": {run, end, "history", "INSERT", is("NEW.workload"), "22021", nil, ended},
		"the removal of one that ended":          {run, end, "workloads", "DELETE", is("OLD.id"), "P0001", nil, ended},
		"an answer about one that is lost": {nil, func(w *world) {
			run(w)
			w.emptied(bus.KeptStream)
		}, "outbox", "INSERT", names, "XX000", nil, nil},
	}
}

// A database that was restored to an older state refuses, for good, what the next term has to
// write about a workload: the others go on, and it is recovered when it is released.
func TestWhatARestoredDatabaseRefusesIsKeptAlone(t *testing.T) {
	t.Parallel()
	bad := event.WorkloadID("test", "bad")
	for name, c := range lostTimes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("a", 2)
			if c.before != nil {
				c.before(w)
			}
			w.older(func() { c.lost(w) })
			w.countTerms()
			w.refuse(c.table, c.events, c.condition, c.state)
			w.start()
			if c.want != nil {
				c.want(w)
			}
			w.others("first")
			if terms := w.terms(); terms > fewTerms {
				t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
			}
			after := w.terms()
			w.others("second")
			if terms := w.terms() - after; terms > 1 {
				t.Errorf("there were %d terms more later on", terms)
			}
			w.stop() // another process does not find what the watermarks have passed by itself
			w.start()
			w.others("third")
			if c.recovered == nil {
				return
			}
			w.sql("DROP TRIGGER refuse_for_test ON " + c.table)
			if released, err := app.Unquarantine(w.ctx, w.config.DatabaseURL, []string{string(bad)}); err != nil || len(released) != 1 {
				t.Fatalf("released %v, %v", released, err)
			}
			c.recovered(w)
		})
	}
}
