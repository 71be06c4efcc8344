package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/workload"
)

// Load reads what a leader starts from: queues, live workloads and nodes, of
// one moment.
func (s *Store) Load(ctx context.Context) (book.Stored, error) {
	var stored book.Stored
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) (err error) {
		if stored.Queues, err = loadQueues(ctx, tx); err != nil {
			return fmt.Errorf("load queues: %w", err)
		}
		if stored.Workloads, err = loadWorkloads(ctx, tx); err != nil {
			return fmt.Errorf("load live workloads: %w", err)
		}
		if stored.Nodes, err = loadNodes(ctx, tx); err != nil {
			return fmt.Errorf("load nodes: %w", err)
		}
		if err = tx.QueryRow(ctx, `SELECT coalesce(max(submission), 0) FROM workloads`).Scan(&stored.LastOrder); err != nil {
			return fmt.Errorf("load the last submission: %w", err)
		}
		return nil
	})
	return stored, err
}

func loadQueues(ctx context.Context, tx pgx.Tx) ([]book.Queue, error) {
	rows, err := tx.Query(ctx, `SELECT name, namespaces, strategy, rules FROM queues ORDER BY name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (q book.Queue, err error) {
		return q, row.Scan(&q.Name, &q.Namespaces, &q.Strategy, &q.Rules)
	})
}

// recordColumns are the columns of workloads w that scanRecord reads, with the
// reservations as JSON; the place in the queue, or 0, is to follow.
const recordColumns = `w.submission, w.id, w.queue, w.namespace, w.kind, w.name, w.priority, w.digest, w.pod_sets,
	w.phase, w.attempt, coalesce(w.cluster, ''), w.holding, w.cancel_requested, w.reason,
	w.submitted_at, w.admitted_at, w.dispatched_at, w.running_at, w.finished_at,
	w.life, w.requeues, w.not_before, w.evict_at,
	(SELECT json_agg(json_build_object('podSet', r.pod_set, 'node', r.node, 'pods', r.pods, 'hostname', r.hostname)
		ORDER BY r.pod_set, r.node) FROM reservations r WHERE r.workload = w.id)`

func scanRecord(row pgx.CollectableRow) (w book.StoredWorkload, err error) {
	var admitted, dispatched, running, finished, notBefore, evictAt *time.Time
	err = row.Scan(&w.Order, &w.ID, &w.Queue, &w.Namespace, &w.Kind, &w.Name, &w.Priority, &w.Digest, &w.PodSets,
		&w.Phase, &w.Attempt, &w.Cluster, &w.Holding, &w.CancelRequested, &w.Reason,
		&w.Times.Submitted, &admitted, &dispatched, &running, &finished,
		&w.Life, &w.Requeues, &notBefore, &evictAt, &w.Placements, &w.Position)
	w.NotBefore, w.EvictAt = orZero(notBefore), orZero(evictAt)
	w.Times = workload.Times{
		Submitted: w.Times.Submitted, Admitted: orZero(admitted), Dispatched: orZero(dispatched),
		Running: orZero(running), Finished: orZero(finished),
	}
	return w, err
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func loadWorkloads(ctx context.Context, tx pgx.Tx) ([]book.StoredWorkload, error) {
	rows, err := tx.Query(ctx, `SELECT `+recordColumns+`, 0 FROM workloads w
		WHERE w.phase NOT IN ('succeeded', 'failed', 'cancelled') OR w.holding ORDER BY w.submission`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRecord)
}

func loadNodes(ctx context.Context, tx pgx.Tx) ([]book.StoredNode, error) {
	rows, err := tx.Query(ctx, `SELECT observed, session, seq, present FROM nodes ORDER BY cluster, name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n book.StoredNode, err error) {
		return n, row.Scan(&n.Node, &n.Version.Session, &n.Version.Seq, &n.Present)
	})
}

// Known returns what is stored of the given workloads, live or finished.
func (s *Store) Known(ctx context.Context, ids []workload.ID) (map[workload.ID]book.Known, error) {
	known := map[workload.ID]book.Known{}
	if len(ids) == 0 {
		return known, nil
	}
	rows, err := s.pool.Query(ctx, `SELECT id, digest, phase FROM workloads WHERE id = ANY($1::uuid[])`, texts(ids))
	if err != nil {
		return nil, fmt.Errorf("look up %d workloads: %w", len(ids), err)
	}
	var id workload.ID
	var found book.Known
	_, err = pgx.ForEachRow(rows, []any{&id, &found.Digest, &found.Phase}, func() error {
		known[id] = found
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look up %d workloads: %w", len(ids), err)
	}
	return known, nil
}

func texts(ids []workload.ID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = string(id)
	}
	return all
}
