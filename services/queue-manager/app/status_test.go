package app_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	localpostgres "muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/services/queue-manager/app"
)

// awaitStatus asks until the answer is as wanted.
func (w *world) awaitStatus(what string, wanted func(query.StatusAnswer) bool) query.StatusAnswer {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		answer, err := w.queries.Status(w.ctx)
		if err == nil && wanted(answer) {
			return answer
		}
		select {
		case <-deadline:
			w.t.Fatalf("not within %s: %s; status: %+v, %v", patience, what, answer, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// The status names the leader, counts workloads, says when a cluster reported last, and
// how full NATS and its streams are.
func TestStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	gang := w.submit(gangOf("gang", "default", 1))
	w.started(gang, 1)
	w.waits(w.submit(gangOf("waiting", "default", 1)), workload.ReasonFit)
	got := w.awaitStatus("one runs and one waits", func(a query.StatusAnswer) bool {
		return a.Workloads[workload.Running] == 1 && a.Workloads[workload.Queued] == 1
	})
	if l := got.Leader; l == nil || !l.Leads || l.Epoch == 0 || l.Holder == "" || got.At.Sub(l.Since) > time.Hour {
		t.Errorf("leader is %+v", l)
	}
	if p := got.Postgres; p.Silent != "" || p.Version == "" || p.Connections < 1 || p.MaxConnections < p.Connections || p.Bytes == 0 {
		t.Errorf("Postgres is %+v", p)
	}
	n := got.NATS
	if n.Silent != "" || n.Version == "" || n.Server == "" || n.Servers != 1 || n.StoredBytes == 0 || len(n.Streams) != len(bus.Streams()) {
		t.Errorf("NATS is %+v", n)
	}
	filled := slices.IndexFunc(n.Streams, func(s query.StreamStatus) bool { return s.Name == bus.EventsStream })
	if s := n.Streams[filled]; s.Silent != "" || s.Messages < 2 || s.Bytes == 0 || s.LimitBytes == 0 || s.Copies != 1 {
		t.Errorf("the stream of events is %+v", s)
	}
	if len(got.Clusters) != 1 || len(got.Attention) != 0 {
		t.Fatalf("clusters %+v, attention %q", got.Clusters, got.Attention)
	}
	c := got.Clusters[0]
	if c.Name != cluster || c.Nodes != 1 || c.ReadyNodes != 1 || c.Live != 1 || c.Silent != "" || c.WatcherHeard.IsZero() || c.DispatcherHeard.IsZero() {
		t.Errorf("the cluster is %+v", c)
	}
}

// Several people who ask at once all have an answer.
func TestStatusForManyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all errgroup.Group
	for range 20 {
		all.Go(func() error {
			answer, err := w.queries.Status(w.ctx)
			if err == nil && (answer.Leader == nil || answer.At.IsZero()) {
				err = fmt.Errorf("the answer is empty: %+v", answer)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

// What needs a person is listed with what to do.
func TestStatusNamesWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	broken := nodeOf("a", 1)
	broken.Ready = false
	w.publish(event.NodeSubject(cluster, "a"), &event.NodeObserved{Version: w.nextVersion(), Node: broken})
	if _, err := w.bus.Conn().Request(event.WorkloadSubject("default"), []byte("no event"), patience); err != nil {
		t.Fatal(err)
	}
	w.awaitStatus("the node and the dead letter are named", func(a query.StatusAnswer) bool {
		all := strings.Join(a.Attention, "\n")
		return strings.Contains(all, "no node of cluster test is ready") && strings.Contains(all, "see `muster get dead-letters`")
	})
}

// Standbys of Postgres are counted, their lag is shown to who may see it, and a Postgres
// that does not answer is silent without taking the rest of the answer along.
func TestStatusOfPostgres(t *testing.T) {
	t.Parallel()
	server := pgtest.Local(t, localpostgres.Options{})
	owner, err := server.CreateDatabase(t.Context(), "muster", "template1")
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Migrate(t.Context(), owner, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	login, _, err := localpostgres.Login(t.Context(), owner, app.DatabaseRole)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldWith(t, func(c *app.Config) { c.DatabaseURL = login })
	w.awaitStatus("there is no standby", func(a query.StatusAnswer) bool { return a.Postgres.Silent == "" && a.Postgres.Followers == 0 })
	standby, err := server.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	w.awaitStatus("a standby follows, and its lag is hidden from the login", func(a query.StatusAnswer) bool {
		return a.Postgres.Followers == 1 && a.Postgres.LagBytes == nil
	})
	admin, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	if _, err := admin.Exec(t.Context(), `GRANT pg_read_all_stats TO `+app.DatabaseRole); err != nil {
		t.Fatal(err)
	}
	w.awaitStatus("the lag is known", func(a query.StatusAnswer) bool { return a.Postgres.Followers == 1 && a.Postgres.LagBytes != nil })
	stuck, err := admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stuck.Exec(t.Context(), `LOCK TABLE leader IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	got := w.awaitStatus("Postgres does not answer in time", func(a query.StatusAnswer) bool {
		return strings.Contains(a.Postgres.Silent, "no answer within 2s")
	})
	if got.Leader != nil || got.NATS.Silent != "" || len(got.Attention) == 0 || !strings.HasPrefix(got.Attention[0], "Postgres is silent") {
		t.Errorf("beside a silent Postgres: leader %+v, NATS %+v, attention %q", got.Leader, got.NATS, got.Attention)
	}
	if err := stuck.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitStatus("Postgres answers again", func(a query.StatusAnswer) bool { return a.Postgres.Silent == "" && a.Leader != nil && a.Leader.Leads })
}

// gauge returns the value of a metric with the given labels; ok is false without one.
func (w *world) gauge(name string, labels map[string]string) (value float64, ok bool) {
	w.t.Helper()
	families, err := w.runtime.Metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			have := map[string]string{}
			for _, pair := range m.GetLabel() {
				have[pair.GetName()] = pair.GetValue()
			}
			if family.GetName() == name && maps.Equal(have, labels) {
				return m.GetGauge().GetValue(), true
			}
		}
	}
	return 0, false
}

// awaitGauge waits until a metric is as wanted.
func (w *world) awaitGauge(what, name string, labels map[string]string, wanted func(value float64, ok bool) bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		value, ok := w.gauge(name, labels)
		if wanted(value, ok) {
			return
		}
		select {
		case <-deadline:
			w.t.Fatalf("not within %s: %s; %s%v is %v, %v", patience, what, name, labels, value, ok)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// The leader shows how long a dispatcher that has work, and intake, have been silent. Junk
// on the dispatcher's subjects is not heard as the dispatcher.
func TestSilenceIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dispatcher := map[string]string{"cluster": cluster, "part": "dispatcher"}
	w.node("a", 1)
	w.awaitGauge("the watcher is heard", "muster_heard_seconds", map[string]string{"cluster": cluster, "part": "capacity-watcher"}, func(_ float64, ok bool) bool { return ok })
	if value, ok := w.gauge("muster_heard_seconds", dispatcher); ok {
		t.Errorf("without a workload the dispatcher is silent for %v", value)
	}
	id := w.submit(gangOf("gang", "default", 1))
	command := w.command(id, event.Present, 1)
	silentFor := func(least float64) func(float64, bool) bool {
		return func(value float64, ok bool) bool { return ok && value >= least }
	}
	w.awaitGauge("the dispatcher is silent", "muster_heard_seconds", dispatcher, silentFor(2))
	if _, err := w.bus.Conn().Request("muster.status."+cluster+".x", []byte(`"junk"`), patience); err != nil {
		t.Fatal(err)
	}
	w.awaitStatus("junk is no report", func(a query.StatusAnswer) bool {
		return len(a.Clusters) == 1 && a.Clusters[0].DispatcherHeard.IsZero() && strings.Contains(a.Clusters[0].Silent, "is no report")
	})
	w.awaitGauge("junk is not heard", "muster_heard_seconds", dispatcher, silentFor(4))
	w.status(event.GangStatus{Workload: id, Attempt: command.Attempt, Created: true})
	w.awaitGauge("the dispatcher is heard", "muster_heard_seconds", dispatcher, func(value float64, ok bool) bool { return ok && value < 2 })

	w.publish(event.SubmitSubject("default"), &event.WorkloadCancel{Workload: id, Why: "no intake runs here"})
	w.awaitGauge("a submission waits", "muster_submissions_waiting_seconds", map[string]string{}, func(value float64, _ bool) bool { return value > 0 })
	w.awaitStatus("the oldest submission is known", func(a query.StatusAnswer) bool {
		return slices.ContainsFunc(a.NATS.Streams, func(s query.StreamStatus) bool { return s.Name == bus.SubmitStream && !s.Oldest.IsZero() })
	})
}
