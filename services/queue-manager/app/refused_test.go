package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/queue-manager/app"
)

func (w *world) sql(statement string) {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(w.ctx, statement); err != nil {
		w.t.Fatal(err)
	}
}

// scan reads one row.
func (w *world) scan(query string, targets ...any) {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(w.ctx, query).Scan(targets...); err != nil {
		w.t.Fatal(err)
	}
}

// refuse has the database refuse, for good and with the SQLSTATE, rows of a table
// for which the condition holds.
func (w *world) refuse(table, events, condition, state string) {
	w.t.Helper()
	w.sql(fmt.Sprintf(`CREATE FUNCTION refuse_%[1]s_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '%[4]s'; END $$;
		CREATE TRIGGER refuse_for_test BEFORE %[2]s ON %[1]s FOR EACH ROW WHEN (%[3]s) EXECUTE FUNCTION refuse_%[1]s_for_test()`,
		table, events, condition, state))
}

// countTerms has the database count the terms that begin.
func (w *world) countTerms() {
	w.t.Helper()
	w.sql(`CREATE TABLE terms_for_test (epoch bigint);
		CREATE FUNCTION count_term_for_test() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN INSERT INTO terms_for_test VALUES (NEW.epoch); RETURN NULL; END $$;
		CREATE TRIGGER count_term_for_test AFTER UPDATE OF epoch ON leader FOR EACH ROW EXECUTE FUNCTION count_term_for_test()`)
}

// terms is how many there were since then.
func (w *world) terms() (terms int) {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(w.ctx, `SELECT count(*) FROM terms_for_test`).Scan(&terms); err != nil {
		w.t.Fatal(err)
	}
	return terms
}

// others shows that everybody else goes on: a gang is submitted, starts, and ends.
func (w *world) others(name string) {
	w.t.Helper()
	id := w.submit(gangOf(name, "default", 1))
	command := w.command(id, event.Present, 1)
	w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true})
	w.pods(command)
	w.phase(id, workload.Running)
	w.cancel("default", id)
	w.command(id, event.Absent, 1)
	w.publish(event.GangSubject(cluster, id), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: id})
	w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true, Gone: true, Released: true})
	w.phase(id, workload.Cancelled)
}

// notStorable fails when the metric has not counted a refusal of that kind.
func (w *world) notStorable(what string) {
	w.t.Helper()
	families, err := w.runtime.Metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "muster_not_storable_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			counted[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
		}
	}
	if counted[what] < 1 {
		w.t.Errorf("muster_not_storable_total counts %v, want one of %s", counted, what)
	}
}

// fewTerms bounds the terms that one refusal may cost.
const fewTerms = 6

// refusal is something that the database refuses, and what comes of it.
type refusal struct {
	before                          func(*world)
	table, events, condition, state string
	then                            func(*world)
	want                            func(*world)
}

// concernsItAlone causes the refusal in a world of its own. It fails the test if what is wanted
// does not come, if the others do not go on, or if that takes more than fewTerms.
func (r refusal) concernsItAlone(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.node("a", 2)
	if r.before != nil {
		r.before(w)
	}
	w.countTerms()
	w.refuse(r.table, r.events, r.condition, r.state)
	r.then(w)
	if r.want != nil {
		r.want(w)
	}
	w.others("first")
	w.others("second")
	if terms := w.terms(); terms > fewTerms {
		t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
	}
	return w
}

// refusalsOfOne are refusals of the workload bad, by what is refused.
func refusalsOfOne() map[string]refusal {
	bad := event.WorkloadID("test", "bad")
	is := func(column string) string { return fmt.Sprintf("%s = '%s'", column, bad) }
	notStorable := func(w *world) {
		w.t.Helper()
		await(w, "a reason", func(e *event.WorkloadChanged) bool {
			return e.ID == bad && e.Reason != nil && e.Reason.Kind == workload.ReasonNotStorable
		})
	}
	failed := func(w *world) {
		w.t.Helper()
		if e := w.phase(bad, workload.Failed); e.Reason == nil || e.Reason.Kind != workload.ReasonNotStorable {
			w.t.Errorf("it failed because of %+v", e.Reason)
		}
	}
	rejected := func(w *world) {
		w.t.Helper()
		if reason := w.rejected(bad).Reason; reason.Kind != workload.ReasonNotStorable {
			w.t.Errorf("it was rejected because of %+v", reason)
		}
	}
	submit := func(w *world) { w.submit(gangOf("bad", "default", 1)) }
	wait := func(w *world) { // for more than there is
		w.submit(gangOf("bad", "default", 3))
		w.waits(bad, workload.ReasonFit)
	}
	run := func(w *world) {
		submit(w)
		command := w.command(bad, event.Present, 1)
		w.status(event.GangStatus{Workload: bad, Attempt: 1, Created: true})
		w.pods(command)
		w.phase(bad, workload.Running)
	}
	grow := func(w *world) { w.node("b", 4) }
	cancel := func(w *world) { w.cancel("default", bad) }
	end := func(w *world) {
		cancel(w)
		w.command(bad, event.Absent, 1)
		w.publish(event.GangSubject(cluster, bad), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: bad})
		w.status(event.GangStatus{Workload: bad, Attempt: 1, Created: true, Gone: true, Released: true})
	}
	hold := func(w *world) {
		w.publish(event.WorkloadSubject("default"), &event.WorkloadHold{Workload: bad, By: "ann@ops"})
	}
	dropped := func(w *world) { w.deadLettered(1) }
	names := fmt.Sprintf("position('%s' IN convert_from(NEW.message, 'UTF8')) > 0", bad)
	noted := fmt.Sprintf("'%s' = ANY (NEW.workloads)", bad)
	odd := func(w *world) {
		gang := gangOf("bad", "default", 1)
		gang.PodSets[1].Name = "odd"
		w.submit(gang)
	}
	return map[string]refusal{
		"a submission":                  {nil, "workloads", "INSERT", is("NEW.id"), "54000", submit, rejected},
		"a manifest":                    {nil, "manifests", "INSERT", is("NEW.workload"), "22P05", submit, rejected},
		"a shape":                       {nil, "shapes", "INSERT", `NEW.pod_sets::text LIKE '%odd%'`, "22P02", odd, rejected},
		"an admission at once":          {nil, "workloads", "INSERT OR UPDATE", "NEW.phase = 'admitted' AND " + is("NEW.id"), "XX123", submit, rejected},
		"an admission by a guard":       {nil, "reservations", "INSERT", is("NEW.workload"), "23514', CONSTRAINT = 'no_overcommit", submit, notStorable},
		"an admission":                  {wait, "workloads", "UPDATE", "NEW.phase = 'admitted' AND " + is("NEW.id"), "P0001", grow, failed},
		"a reservation":                 {wait, "reservations", "INSERT", is("NEW.workload"), "42804", grow, failed},
		"a first message":               {nil, "outbox", "INSERT", names, "22001", submit, rejected},
		"a first line of history":       {nil, "history", "INSERT", is("NEW.workload"), "0A000", submit, rejected},
		"a line of history":             {wait, "history", "INSERT", is("NEW.workload"), "22021", grow, notStorable},
		"the end of one that waits":     {wait, "archive", "INSERT", is("NEW.id"), "54001", cancel, nil},
		"the removal of one that waits": {wait, "workloads", "DELETE", is("OLD.id"), "P0001", cancel, nil},
		"the removal of a manifest":     {wait, "manifests", "DELETE", is("OLD.workload"), "42804", cancel, nil},
		"the removal of reservations":   {run, "reservations", "DELETE", is("OLD.workload"), "XX123", end, nil},
		"a message about one that runs": {run, "outbox", "INSERT", names, "XX000", cancel, notStorable},
		"the state of one that runs":    {run, "workloads", "UPDATE", is("NEW.id"), "23502", cancel, notStorable},
		"what is asked of one":          {wait, "workloads", "UPDATE OF asked", is("NEW.id"), "XX123", hold, dropped},
		"the note of a submission":      {nil, "commits", "INSERT", noted, "XX123", submit, rejected},
		"the note of one that runs":     {run, "commits", "INSERT", noted, "XX123", cancel, notStorable},
	}
}

// Whatever the database refuses of one workload, for good and with whatever
// SQLSTATE: that one is set aside with the reason, and everybody else goes on.
func TestARefusedWorkloadIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	for name, c := range refusalsOfOne() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := c.concernsItAlone(t)
			after := w.terms()
			w.others("third")
			if terms := w.terms() - after; terms > 1 {
				t.Errorf("there were %d terms more later on", terms)
			}
			w.stop() // another process knows, or finds out, too
			w.start()
			w.others("fourth")
		})
	}
}

// A move that cannot be stored leaves the gang where it is, which its reason says,
// and others move.
func TestAMoveThatIsRefusedLeavesTheGangWhereItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 4)
	bad, good := w.submit(gangOf("bad", "default", 1)), w.submit(gangOf("good", "default", 1))
	for _, id := range []workload.ID{bad, good} {
		w.command(id, event.Present, 1)
		w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true})
		w.phase(id, workload.Dispatched)
	}
	w.node("b", 4)
	w.refuse("reservations", "INSERT", fmt.Sprintf("NEW.workload = '%s'", bad), "23514")
	w.publish(event.NodeSubject(cluster, "a"), &event.NodeRemoved{Version: w.nextVersion(), Cluster: cluster, Node: "a"})
	await(w, "the other gang on node b", func(e *event.GangCommand) bool {
		return e.Workload == good && len(e.Placements) > 0 && e.Placements[0].Node == "b"
	})
	stays := await(w, "a reason", func(e *event.WorkloadChanged) bool {
		return e.ID == bad && e.Reason != nil && e.Reason.Kind == workload.ReasonNotStorable
	})
	if stays.Phase != workload.Dispatched || len(stays.Placements) == 0 || stays.Placements[0].Node != "a" {
		t.Errorf("the gang is %s on %+v, want it dispatched where it was", stays.Phase, stays.Placements)
	}
	w.others("after")
}

// What is refused to all is the fault of no workload: none fails for it, terms come slower
// and slower, and when it is over everything goes on.
func TestWhatIsRefusedToAllIsNobodysFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	w.refuse("history", "INSERT", "true", "42501")
	w.countTerms()
	id := w.submit(gangOf("gang", "default", 1))
	const failures = 4 // after which pauses have doubled three times
	deadline := time.After(patience)
	for w.terms() < failures {
		select {
		case <-deadline:
			t.Fatalf("only %d terms", w.terms())
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.sql(`DROP TRIGGER refuse_for_test ON history`)
	w.command(id, event.Present, 1)
}

// A change of the configuration that the database refuses is answered so, and ends
// no term.
func TestAConfigurationThatIsRefusedEndsNoTerm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	w.refuse("applied", "INSERT", "NEW.name = 'bad'", "54000")
	w.countTerms()
	for _, name := range []string{"bad", "good"} {
		t.Run(name, func(t *testing.T) {
			manifest := json.RawMessage(fmt.Sprintf(`{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadPriorityClass", "metadata": {"name": %q}, "value": 7}`, name))
			if _, err := kueue.ParseOne(manifest); err != nil {
				t.Fatal(err)
			}
			_, err := w.queries.Configure(w.ctx, "", query.ConfigureRequest{Apply: []json.RawMessage{manifest}})
			if refused := err != nil && strings.Contains(err.Error(), "refuses to store"); refused != (name == "bad") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	w.others("first")
	if terms := w.terms(); terms != 0 {
		t.Errorf("there were %d terms", terms)
	}
}

// What is in quarantine stays as it is, as its reason says; a
// cancellation is kept with the reason; and once it is released everything that
// happened meanwhile is made good.
func TestReleasedFromQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	bad := w.submit(gangOf("bad", "default", 2))
	command := w.command(bad, event.Present, 1)
	w.status(event.GangStatus{Workload: bad, Attempt: 1, Created: true})
	w.phase(bad, workload.Dispatched)
	w.refuse("workloads", "UPDATE", fmt.Sprintf("NEW.id = '%s'", bad), "XX123")
	w.pods(command)
	explained := func(e *event.WorkloadChanged) bool {
		return e.ID == bad && e.Reason != nil && e.Reason.Kind == workload.ReasonNotStorable
	}
	await(w, "a reason", explained)
	w.waits(w.submit(gangOf("waits", "default", 1)), workload.ReasonFit) // what it has stays charged
	w.metric("muster_quarantined", 1)
	w.notStorable("workload")
	explanation, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: bad})
	if err != nil || explanation.Reason.Kind != workload.ReasonNotStorable {
		t.Errorf("explained is %+v, %v", explanation, err)
	}
	listed, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: bad})
	if err != nil || len(listed.Workloads) != 1 || listed.Workloads[0].Reason == nil || listed.Workloads[0].Reason.Kind != workload.ReasonNotStorable {
		t.Errorf("listed is %+v, %v", listed, err)
	}
	answers := func() (n int) {
		for _, e := range bustest.Heard[*event.WorkloadChanged](w.heard) {
			if explained(e) {
				n++
			}
		}
		return n
	}
	before := answers()
	w.submit(gangOf("bad", "default", 2))
	await(w, "an answer to the same submission again", func(*event.WorkloadChanged) bool { return answers() > before })
	w.sql(`DROP TRIGGER refuse_for_test ON workloads`)
	released, err := app.Unquarantine(w.ctx, w.config.DatabaseURL, []string{string(bad)})
	if err != nil || !slices.Equal(released, []string{string(bad)}) {
		t.Fatalf("released %v, %v", released, err)
	}
	w.phase(bad, workload.Running)
	w.metric("muster_quarantined", 0)
}
