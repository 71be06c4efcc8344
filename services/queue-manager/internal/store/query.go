package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Workloads returns a page of workloads.
func (s *Store) Workloads(ctx context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
	if r.Limit <= 0 || r.Limit > query.MaxPage {
		r.Limit = query.MaxPage
	}
	phases := make([]string, len(r.Phases))
	for i, phase := range r.Phases {
		phases[i] = string(phase)
	}
	rows, err := s.pool.Query(ctx, `SELECT `+recordColumns+`,
			CASE WHEN w.phase = 'queued' THEN (SELECT count(*) + 1 FROM workloads o WHERE o.queue = w.queue AND o.phase = 'queued'
				AND (o.priority > w.priority OR o.priority = w.priority AND o.submission < w.submission)) ELSE 0 END
		FROM workloads w
		WHERE w.submission > $1 AND ($2 = '' OR w.id::text = $2) AND ($3 = '' OR w.name = $3) AND ($4 = '' OR w.namespace = $4)
			AND ($5 = '' OR w.queue = $5) AND (cardinality($6::text[]) = 0 OR w.phase = ANY($6))
		ORDER BY w.submission LIMIT $7`, r.After, string(r.ID), r.Name, r.Namespace, r.Queue, phases, r.Limit+1)
	if err != nil {
		return query.WorkloadsAnswer{}, fmt.Errorf("list workloads: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanRecord)
	if err != nil {
		return query.WorkloadsAnswer{}, fmt.Errorf("list workloads: %w", err)
	}
	answer := query.WorkloadsAnswer{Workloads: []workload.Record{}}
	for i, w := range found {
		if i == r.Limit {
			answer.Next = found[i-1].Order
			break
		}
		answer.Workloads = append(answer.Workloads, w.Record)
	}
	return answer, nil
}

// History returns what happened to a workload.
func (s *Store) History(ctx context.Context, r query.HistoryRequest) (query.HistoryAnswer, error) {
	rows, err := s.pool.Query(ctx, `SELECT at, phase, attempt, reason FROM history
		WHERE workload::text = $1 ORDER BY seq LIMIT $2`, string(r.ID), query.MaxPage)
	if err != nil {
		return query.HistoryAnswer{}, fmt.Errorf("read history of workload %q: %w", r.ID, err)
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e query.HistoryEntry, err error) {
		return e, row.Scan(&e.At, &e.Phase, &e.Attempt, &e.Reason)
	})
	if err != nil {
		return query.HistoryAnswer{}, fmt.Errorf("read history of workload %q: %w", r.ID, err)
	}
	return query.HistoryAnswer{Entries: entries}, nil
}

// Queues returns all queues with what is in them.
func (s *Store) Queues(ctx context.Context) (query.QueuesAnswer, error) {
	rows, err := s.pool.Query(ctx, `SELECT q.name, q.namespaces, q.strategy,
			count(w.id) FILTER (WHERE w.phase = 'queued'), count(w.id) FILTER (WHERE w.holding),
			coalesce((SELECT json_object_agg(key, amount) FROM (
				SELECT p.key, sum(p.value::bigint * v.pods) AS amount
				FROM reservations v JOIN workloads o ON o.id = v.workload, jsonb_each_text(v.requests) p
				WHERE o.queue = q.name GROUP BY p.key) sums), '{}')
		FROM queues q LEFT JOIN workloads w ON w.queue = q.name
			AND (w.phase NOT IN ('succeeded', 'failed', 'cancelled') OR w.holding)
		GROUP BY q.name ORDER BY q.name`)
	if err != nil {
		return query.QueuesAnswer{}, fmt.Errorf("list queues: %w", err)
	}
	queues, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q query.Queue, err error) {
		return q, row.Scan(&q.Name, &q.Namespaces, &q.Strategy, &q.Waiting, &q.Live, &q.Reserved)
	})
	if err != nil {
		return query.QueuesAnswer{}, fmt.Errorf("list queues: %w", err)
	}
	return query.QueuesAnswer{Queues: queues}, nil
}

// Nodes returns all nodes that are there.
func (s *Store) Nodes(ctx context.Context) (query.NodesAnswer, error) {
	rows, err := s.pool.Query(ctx, `SELECT n.observed,
			coalesce(json_object_agg(r.resource, r.reserved) FILTER (WHERE r.reserved > 0), '{}'),
			coalesce(json_object_agg(r.resource, r.allocatable - r.used - r.reserved) FILTER (WHERE r.resource IS NOT NULL), '{}')
		FROM nodes n LEFT JOIN node_resources r ON r.cluster = n.cluster AND r.node = n.name
		WHERE n.present GROUP BY n.cluster, n.name ORDER BY n.cluster, n.name`)
	if err != nil {
		return query.NodesAnswer{}, fmt.Errorf("list nodes: %w", err)
	}
	nodes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n query.Node, err error) {
		n.Reserved, n.Free = resource.List{}, resource.List{}
		return n, row.Scan(&n.Node, &n.Reserved, &n.Free)
	})
	if err != nil {
		return query.NodesAnswer{}, fmt.Errorf("list nodes: %w", err)
	}
	return query.NodesAnswer{Nodes: nodes}, nil
}
