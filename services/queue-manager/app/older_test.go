package app_test

import (
	"context"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/queue-manager/app"
)

// copied copies the database, which must not be in use meanwhile, and returns how
// queue-manager reaches the copy.
func (w *world) copied(suffix string) string {
	w.t.Helper()
	parsed, err := url.Parse(w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	name := strings.TrimPrefix(parsed.Path, "/")
	admin := *parsed
	admin.Path = "/postgres"
	conn, err := pgx.Connect(w.ctx, admin.String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	if _, err := conn.Exec(w.ctx, "CREATE DATABASE "+name+suffix+" TEMPLATE "+name); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), admin.String())
		if err == nil {
			_, err = conn.Exec(context.Background(), "DROP DATABASE "+name+suffix+" WITH (FORCE)")
		}
		if err != nil {
			w.t.Logf("drop the copy: %v", err) // it goes with its server
		}
	})
	service, err := url.Parse(w.config.DatabaseURL)
	if err != nil {
		w.t.Fatal(err)
	}
	service.Path += suffix
	return service.String()
}

// started has a gang run in the given attempt.
func (w *world) started(id workload.ID, attempt int) *event.GangCommand {
	w.t.Helper()
	command := w.command(id, event.Present, attempt)
	w.status(event.GangStatus{Workload: id, Attempt: attempt, Created: true})
	w.pods(command)
	w.phase(id, workload.Running)
	return command
}

func (w *world) goneAs(id workload.ID, attempt int) {
	w.t.Helper()
	w.status(event.GangStatus{Workload: id, Attempt: attempt, Gone: true, Released: true})
}

// recovered checks how many workloads the metric counts, by result.
func (w *world) recovered(want map[string]float64) {
	w.t.Helper()
	families, err := w.runtime.Metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "muster_recovered_workloads_total" {
			for _, metric := range family.GetMetric() {
				got[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("the metric counts %v, want %v", got, want)
	}
}

// Postgres comes back as of a while ago, while NATS and the clusters go on: what was
// admitted since is removed, and what was accepted since is queued again, or named.
func TestADatabaseRestoredToAnOlderState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	runs := w.submit(gangOf("runs", "default", 1))
	w.started(runs, 1)
	evicted := w.submit(gangOf("evicted", "default", 1))
	w.started(evicted, 1)
	waits := w.submit(gangOf("waits", "default", 1))
	w.waits(waits, workload.ReasonFit)
	w.stop()
	older := w.copied("_older")
	w.start()

	// The time that will be lost.
	w.cancel("default", evicted)
	w.command(evicted, event.Absent, 1)
	w.goneAs(evicted, 1)
	w.phase(evicted, workload.Cancelled)
	before := w.started(waits, 1)
	w.node("b", 1)
	accepted := w.submit(gangOf("accepted", "default", 1))
	w.started(accepted, 1)
	late := w.submit(gangOf("late", "default", 9))
	w.waits(late, workload.ReasonFit)
	w.stop()

	w.config.DatabaseURL = older
	w.start()
	for _, id := range []workload.ID{waits, accepted} {
		removed := await(w, "the attempt of the lost time is removed", func(e *event.GangCommand) bool {
			return e.Workload == id && e.State == event.Absent && e.Attempt == 1
		})
		if removed.Epoch <= before.Epoch {
			t.Errorf("%s is removed in epoch %d, and was started in %d", id, removed.Epoch, before.Epoch)
		}
		again := w.waits(id, workload.ReasonRestored)
		if again.Attempt != 2 {
			t.Errorf("%s waits for attempt %d, want 2", id, again.Attempt)
		}
	}
	w.phase(late, workload.Queued)
	if got := await(w, "its end is kept", func(e *event.WorkloadChanged) bool {
		return e.ID == evicted && e.Phase == workload.Cancelled && e.Attempt == 1
	}); got.Holding {
		t.Error("what had ended holds places")
	}
	for _, id := range []workload.ID{waits, accepted} { // before that none of them has a place
		w.goneAs(id, 1)
		w.started(id, 2)
	}
	await(w, "what ran is commanded again", func(e *event.GangCommand) bool {
		return e.Workload == runs && e.State == event.Present && e.Attempt == 1
	})
	w.recovered(map[string]float64{"requeued": 2, "removed": 0, "ended": 0, "lost": 0, "unasked": 0})
	w.stopReplayable()
	if report := w.replay(); report.Difference != nil {
		t.Errorf("the decisions of the restored database come out otherwise: %+v", report.Difference)
	}
}

// Of a submission that NATS does not have any more the operator and the submitter
// hear that it is lost; what runs of it is removed and then forgotten.
func TestWhatCannotBeBroughtBackIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	lost := event.WorkloadID("test", "lost")
	w.older(func() {
		w.submit(gangOf("lost", "default", 1))
		w.started(lost, 1)
		w.emptied(bus.KeptStream)
	})
	w.start()
	w.command(lost, event.Absent, 1)
	if rejected := w.rejected(lost); rejected.Reason.Kind != workload.ReasonRestored {
		t.Errorf("the submitter gets %+v", rejected.Reason)
	}
	dead, err := w.bus.DeadLetters(w.ctx)
	if err != nil || len(dead) != 1 || !strings.Contains(dead[0].Reason, "submit it again") || !strings.Contains(dead[0].Reason, "lost") {
		t.Errorf("the operator finds %+v, %v", dead, err)
	}
	w.recovered(map[string]float64{"requeued": 0, "removed": 1, "ended": 0, "lost": 1, "unasked": 0})
	w.goneAs(lost, 1)
	w.command(lost, event.Forgotten, 1)
	next := w.submit(gangOf("next", "default", 1))
	w.started(next, 1)
}

// A new database that is connected by mistake has nothing removed.
func TestANewDatabaseRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	runs := w.submit(gangOf("runs", "default", 1))
	w.started(runs, 1)
	w.stop()

	w.config.DatabaseURL = postgres.As(t, postgres.Database(t), app.DatabaseRole)
	core, logs := observer.New(zap.WarnLevel)
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	ended, config := make(chan error, 1), w.config
	go func() { ended <- app.Run(ctx, &config, service.NewRuntime(zap.New(core), "queue-manager")) }()
	refused := func() bool {
		for _, entry := range logs.All() {
			if err, ok := entry.ContextMap()["error"].(string); ok && strings.Contains(err, "--accept-new-database") {
				return true
			}
		}
		return false
	}
	for tick := time.NewTicker(20 * time.Millisecond); !refused(); <-tick.C {
		if ctx.Err() != nil {
			t.Fatalf("a new database is not refused: %v", logs.All())
		}
	}
	cancel()
	<-ended
	if got := w.last(runs); got.State != event.Present {
		t.Errorf("the last command of a gang that runs is %s", got.State)
	}

	w.config.AcceptNewDatabase = true
	w.start()
	w.command(runs, event.Absent, 1)
}

// last returns the last command of a workload that NATS has.
func (w *world) last(id workload.ID) *event.GangCommand {
	w.t.Helper()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		w.t.Fatal(err)
	}
	stream, err := js.Stream(w.ctx, bus.DispatchStream)
	if err != nil {
		w.t.Fatal(err)
	}
	message, err := stream.GetLastMsgForSubject(w.ctx, event.DispatchSubject(cluster, id))
	if err != nil {
		w.t.Fatal(err)
	}
	envelope, err := event.Parse(message.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	payload, err := event.Decode(envelope)
	if err != nil {
		w.t.Fatal(err)
	}
	return payload.(*event.GangCommand)
}

// silenced takes away what was said of a workload, as if it had not been published
// before the database was lost.
func (w *world) silenced(subjects ...string) {
	w.t.Helper()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, subject := range subjects {
		stream, err := js.StreamNameBySubject(w.ctx, subject)
		if err != nil {
			w.t.Fatal(err)
		}
		of, err := js.Stream(w.ctx, stream)
		if err == nil {
			err = of.Purge(w.ctx, jetstream.WithPurgeSubject(subject))
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// A submission that was stored in the lost time and not answered is queued again, and
// so is one of which only a command tells. What was refused then stays refused.
func TestWhatWasNotAnsweredIsTakenInAgain(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *app.Config) { c.MaxLive = 4 })
	w.node("a", 1)
	w.stop()
	older := w.copied("_older")
	w.start()
	begun := w.submit(gangOf("begun", "default", 1))
	w.started(begun, 1)
	heard := w.submit(gangOf("heard", "default", 1))
	w.waits(heard, workload.ReasonFit)
	silent := w.submit(gangOf("silent", "default", 1))
	w.waits(silent, workload.ReasonFit)
	given := w.submit(gangOf("given", "default", 1))
	w.waits(given, workload.ReasonFit)
	refused := w.submit(gangOf("refused", "default", 1))
	if rejected := w.rejected(refused); rejected.Reason.Kind != workload.ReasonFull {
		t.Fatalf("one too many is refused because of %+v", rejected.Reason)
	}
	w.cancel("default", given)
	w.phase(given, workload.Cancelled)
	w.stop()
	w.silenced(event.EventsSubject("default", begun), event.EventsSubject("default", silent), event.EventsSubject("default", given))
	w.heard = bustest.New(t) // what was said of them before is not heard again
	w.heard.Listen(w.ctx, w.bus, bus.EventsStream, "muster.events.*.*")

	w.config.DatabaseURL, w.config.MaxLive = older, 10
	w.start()
	if again := w.waits(begun, workload.ReasonRestored); again.Attempt != 2 {
		t.Errorf("what a command tells of waits for attempt %d, want 2", again.Attempt)
	}
	w.phase(silent, workload.Queued)
	w.phase(given, workload.Cancelled)
	if answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: refused}); err != nil || len(answer.Workloads) != 0 {
		t.Errorf("what was told to be refused is %+v, %v", answer.Workloads, err)
	}
	w.stopReplayable()
	if report := w.replay(); report.Difference != nil {
		t.Errorf("the decisions of the restored database come out otherwise: %+v", report.Difference)
	}
}

// A submission of the lost time that the restored database refuses to take in again is
// rejected, and the term goes on without it.
func TestWhatIsTakenInAgainMayBeRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	bad := event.WorkloadID("test", "bad")
	w.older(func() {
		w.submit(gangOf("bad", "default", 1))
		w.started(bad, 1)
	})
	w.countTerms()
	w.refuse("workloads", "INSERT", "NEW.id = '"+string(bad)+"'", "XX123")
	w.start()
	if reason := w.rejected(bad).Reason; reason.Kind != workload.ReasonNotStorable {
		t.Errorf("it was rejected because of %+v", reason)
	}
	w.command(bad, event.Absent, 1)
	w.goneAs(bad, 1)
	w.others("first")
	if terms := w.terms(); terms > fewTerms {
		t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
	}
}
