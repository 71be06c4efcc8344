package suite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/workload"
)

var rayClusters = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}

// watchObjects notes every RayCluster of the installation that ever exists, by
// its UID.
func (w *world) watchObjects() {
	options := metav1.ListOptions{LabelSelector: kube.ClusterLabel + "=" + w.access.Cluster}
	for w.ctx.Err() == nil {
		watching, err := w.kube.Resource(rayClusters).Namespace(metav1.NamespaceAll).Watch(w.ctx, options)
		if err != nil {
			continue
		}
		for change := range watching.ResultChan() {
			object, ok := change.Object.(*unstructured.Unstructured)
			if !ok {
				break // the watch is too old
			}
			id := workload.ID(object.GetLabels()[kube.WorkloadLabel])
			w.mu.Lock()
			if w.created[id] == nil {
				w.created[id] = map[string]bool{}
			}
			w.created[id][string(object.GetUID())] = true
			w.mu.Unlock()
		}
		watching.Stop()
	}
}

// watchLedger looks all the time at what must never be in the ledger.
func (w *world) watchLedger() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
		_ = w.lookAtLedger(ctx) // Postgres may be broken
		cancel()
	}
}

func (w *world) lookAtLedger(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, w.access.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for what, statement := range map[string]string{
		"over-committed node": `SELECT node || ' ' || resource FROM node_resources WHERE reserved + used > allocatable`,
		"half a gang": `SELECT w.name FROM workloads w
			WHERE w.phase IN ('admitted', 'dispatched', 'running')
			AND w.gang <> (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = w.id)`,
		"queued with a reservation": `SELECT w.name FROM workloads w JOIN reservations r ON r.workload = w.id WHERE w.phase = 'queued'`,
		// The services' logins have the rights of their role only.
		"session that may do everything": `SELECT a.usename FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
			WHERE a.application_name = 'muster-queue-manager'
			AND (r.rolsuper OR pg_has_role(r.oid, (SELECT relowner FROM pg_class WHERE oid = 'leader'::regclass), 'MEMBER'))`,
		"reservation without an owner": `SELECT r.workload::text FROM reservations r
			WHERE NOT EXISTS (SELECT FROM workloads w WHERE w.id = r.workload)`,
	} {
		rows, err := conn.Query(ctx, statement)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if len(found) > 0 {
			w.mu.Lock()
			w.breach("%s: %v", what, found)
			w.mu.Unlock()
		}
	}
	return nil
}

// check proves at the end what the promises say, from Postgres, the streams and
// the cluster.
func (w *world) check(t *testing.T) {
	t.Helper()
	w.until(t, "nothing is left in Kubernetes", w.nothingLeft)
	found := w.verify(t)
	for _, each := range found {
		t.Error(each)
	}
	if len(found) == 0 {
		t.Logf("%d gangs: none lost, none twice", len(w.submitted))
	}
}

// nothingLeft reports whether Kubernetes has nothing of the installation.
func (w *world) nothingLeft() bool {
	ours := metav1.ListOptions{LabelSelector: kube.ClusterLabel + "=" + w.access.Cluster}
	for _, resource := range []schema.GroupVersionResource{rayClusters, {Version: "v1", Resource: "pods"}} {
		left, err := w.kube.Resource(resource).Namespace(metav1.NamespaceAll).List(w.ctx, ours)
		if err != nil || len(left.Items) > 0 {
			return false
		}
	}
	return true
}

// verify reads Postgres, the streams and what was seen of the cluster, when all
// gangs are at their end, and returns what is wrong.
func (w *world) verify(t *testing.T) (found []string) {
	t.Helper()
	if err := w.lookAtLedger(w.ctx); err != nil {
		found = append(found, fmt.Sprintf("look at the ledger: %v", err))
	}
	found = append(found, w.checkDatabase()...)
	found = append(found, w.settledStreams(t)...)
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, g := range w.submitted {
		if g.phase != workload.Cancelled {
			found = append(found, fmt.Sprintf("gang %s is %q, want it cancelled", g.name, g.phase))
		}
		if count := len(w.created[id]); count != 1 {
			found = append(found, fmt.Sprintf("gang %s was created %d times, want once", g.name, count))
		}
	}
	found = append(found, w.breaches...)
	w.breaches = nil
	if w.recorder != nil {
		violations := w.recorder.Report().Violations
		found = append(found, violations[min(w.violations, len(violations)):]...)
		w.violations = len(violations)
	}
	return found
}

// checkDatabase reads the end of every gang, and that nothing is held.
func (w *world) checkDatabase() (wrong []string) {
	conn, err := pgx.Connect(w.ctx, w.access.DatabaseURL)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = conn.Close(w.ctx) }()
	rows, err := conn.Query(w.ctx, `SELECT id::text, count(*) FROM (SELECT id FROM workloads UNION ALL SELECT id FROM archive) AS w GROUP BY id`)
	if err != nil {
		return []string{err.Error()}
	}
	found := map[workload.ID]int{}
	var id string
	var count int
	if _, err := pgx.ForEachRow(rows, []any{&id, &count}, func() error { found[workload.ID(id)] = count; return nil }); err != nil {
		return []string{err.Error()}
	}
	w.mu.Lock()
	for id, g := range w.submitted {
		if found[id] != 1 {
			wrong = append(wrong, fmt.Sprintf("gang %s is %d times in the database, want once", g.name, found[id]))
		}
	}
	if len(found) != len(w.submitted) {
		wrong = append(wrong, fmt.Sprintf("there are %d workloads in the database, %d were submitted", len(found), len(w.submitted)))
	}
	w.mu.Unlock()
	for what, statement := range map[string]string{
		"reservations":                `SELECT count(*) FROM reservations`,
		"amounts reserved":            `SELECT count(*) FROM node_resources WHERE reserved <> 0`,
		"admissions beyond the first": `SELECT count(*) FROM (SELECT FROM history WHERE phase = 'admitted' AND reason IS NULL GROUP BY workload, attempt HAVING count(*) > 1) AS twice`,
	} {
		if err := conn.QueryRow(w.ctx, statement).Scan(&count); err != nil {
			wrong = append(wrong, fmt.Sprintf("count %s: %v", what, err))
		} else if count != 0 {
			wrong = append(wrong, fmt.Sprintf("at the end there are %d %s", count, what))
		}
	}
	// What was said of gangs that were admitted more than once in an attempt.
	var told []string
	if err := conn.QueryRow(w.ctx, `SELECT coalesce(array_agg(row_to_json(h)::text ORDER BY h.seq), '{}') FROM (SELECT * FROM history h WHERE EXISTS
		(SELECT FROM history o WHERE o.workload = h.workload AND o.phase = 'admitted' AND o.reason IS NULL GROUP BY o.attempt HAVING count(*) > 1) ORDER BY seq LIMIT 40) h`).Scan(&told); err != nil {
		wrong = append(wrong, fmt.Sprintf("read the history: %v", err))
	}
	return append(wrong, told...)
}

// settledStreams is checkStreams when what was lost has been said again, or should
// have been.
func (w *world) settledStreams(t *testing.T) (wrong []string) {
	t.Helper()
	for deadline := time.Now().Add(patience / 3); ; {
		if wrong = w.checkStreams(t); len(wrong) == 0 || time.Now().After(deadline) {
			return wrong
		}
		select {
		case <-w.ctx.Done():
			return wrong
		case <-time.After(lookEvery):
		}
	}
}

// checkStreams reads what the streams have: one admission and the end of each
// workload, which may be told again, and no command to start anything.
func (w *world) checkStreams(t *testing.T) (wrong []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	admissions, ended := map[workload.ID]string{}, map[workload.ID]bool{}
	history := w.reads(t, bus.EventsStream, func() (*bus.Following, error) {
		return w.bus.Replay(ctx, bus.EventsStream, bus.EventsSubject("*", "*"))
	})
	drain(t, ctx, history, func(payload event.Payload) {
		changed, ok := payload.(*event.WorkloadChanged)
		if !ok {
			return
		}
		if ended[changed.ID] = ended[changed.ID] || changed.Phase.Final(); changed.Phase != workload.Admitted {
			return
		}
		admission := fmt.Sprintf("attempt %d at %v on %v", changed.Attempt, changed.Times.Admitted.Truncate(time.Microsecond), changed.Placements) // as Postgres keeps it
		if before := admissions[changed.ID]; before != "" && before != admission {
			wrong = append(wrong, fmt.Sprintf("workload %s was admitted twice: %s, and %s", changed.ID, before, admission))
		}
		admissions[changed.ID] = admission
	})
	commands := w.reads(t, bus.DispatchStream, func() (*bus.Following, error) {
		return w.bus.Follow(ctx, bus.DispatchStream, bus.DispatchFilter(w.access.Cluster))
	})
	drain(t, ctx, commands, func(payload event.Payload) {
		if command, ok := payload.(*event.GangDesired); ok && command.State == event.Present {
			wrong = append(wrong, fmt.Sprintf("at the end there is a command to start workload %s", command.Workload))
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, g := range w.submitted {
		if !ended[id] {
			wrong = append(wrong, fmt.Sprintf("no event tells the end of gang %s", g.name))
		}
	}
	return wrong
}

// reads begins to read a stream; servers that have just come back may not have
// agreed on who leads it.
func (w *world) reads(t *testing.T, stream string, begin func() (*bus.Following, error)) (following *bus.Following) {
	t.Helper()
	w.until(t, "stream "+stream+" can be read", func() bool {
		var err error
		if following, err = begin(); err != nil {
			t.Logf("stream %s cannot be read yet: %v", stream, err)
		}
		return err == nil
	})
	return following
}

// drain hands over what a stream has now.
func drain(t *testing.T, ctx context.Context, following *bus.Following, take func(event.Payload)) {
	t.Helper()
	caughtUp := following.CaughtUp
	for caughtUp != nil || len(following.C) > 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("read a stream: %v", ctx.Err())
		case <-caughtUp:
			caughtUp = nil
		case d := <-following.C:
			_, payload, err := d.Event()
			if err != nil {
				t.Errorf("unreadable message: %v", err)
				continue
			}
			take(payload)
		}
	}
}
