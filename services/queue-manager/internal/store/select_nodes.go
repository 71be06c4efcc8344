package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Nodes returns the nodes of a request that are there, of one moment.
func (s *Store) Nodes(ctx context.Context, r query.NodesRequest) (answer query.NodesAnswer, err error) {
	if err := r.Check(); err != nil {
		return answer, fmt.Errorf("list nodes: %w", err)
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		answer = query.NodesAnswer{Selected: true}
		if err := selectNodes(ctx, tx, r, &answer); err != nil {
			return err
		}
		if r.Limit > 0 {
			if err := countNodes(ctx, tx, r, &answer); err != nil {
				return err
			}
		}
		if r.Holders {
			return holders(ctx, tx, answer.Nodes)
		}
		return nil
	})
	if err != nil {
		return query.NodesAnswer{}, fmt.Errorf("list nodes: %w", err)
	}
	return answer, nil
}

// selectNodes reads a page of nodes: it finds their keys first, and reads the amounts of these
// alone.
func selectNodes(ctx context.Context, tx pgx.Tx, r query.NodesRequest, answer *query.NodesAnswer) error {
	args := parameters{}
	where := nodesWhere(r, &args)
	if r.From != (query.NodeName{}) {
		where += fmt.Sprintf(` AND (cluster COLLATE "C", name COLLATE "C") >= (%s, %s)`, args.add(r.From.Cluster), args.add(r.From.Name))
	}
	var limit *int // none is no limit
	if r.Limit > 0 {
		one := r.Limit + 1
		limit = &one
	}
	rows, err := tx.Query(ctx, `SELECT n.observed, r.reserved, r.free
		FROM (SELECT cluster, name, observed FROM nodes WHERE `+where+` ORDER BY cluster COLLATE "C", name COLLATE "C" LIMIT `+args.add(limit)+`::bigint) n
		LEFT JOIN LATERAL (SELECT coalesce(json_object_agg(resource, reserved) FILTER (WHERE reserved > 0), '{}') AS reserved,
				coalesce(json_object_agg(resource, allocatable - used - reserved), '{}') AS free
			FROM node_resources WHERE cluster = n.cluster AND node = n.name) r ON true
		ORDER BY n.cluster COLLATE "C", n.name COLLATE "C"`, args...)
	if err != nil {
		return err
	}
	answer.Nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n query.Node, err error) {
		n.Reserved, n.Free = resource.List{}, resource.List{}
		return n, row.Scan(&n.Node, &n.Reserved, &n.Free)
	})
	if r.Limit > 0 && len(answer.Nodes) > r.Limit {
		next := answer.Nodes[r.Limit]
		answer.Next = query.NodeName{Cluster: next.Cluster, Name: next.Name}
		answer.Nodes = answer.Nodes[:r.Limit]
	}
	return err
}

// countNodes counts the nodes that a request selects on all its pages.
func countNodes(ctx context.Context, tx pgx.Tx, r query.NodesRequest, answer *query.NodesAnswer) error {
	args := parameters{}
	where := nodesWhere(r, &args)
	return tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE `+where+`)::int, count(*)::int FROM nodes WHERE present`, args...).
		Scan(&answer.Count, &answer.InAll)
}

// nodesWhere is the condition on the nodes of a request; what is not asked for is left out.
func nodesWhere(r query.NodesRequest, args *parameters) string {
	where := "present"
	if r.Cluster != "" {
		where += " AND cluster = " + args.add(r.Cluster)
	}
	if r.Name != "" {
		where += " AND name = " + args.add(r.Name)
	}
	if r.Prefix != "" {
		where += " AND starts_with(name, " + args.add(r.Prefix) + ")"
	}
	const ready = " AND (observed->>'ready' = 'true') IS "
	switch r.State {
	case query.NodeReady:
		where += ready + "TRUE AND NOT " + closedNode(args)
	case query.NodeClosed:
		where += ready + "TRUE AND " + closedNode(args)
	case query.NodeBroken:
		where += ready + "NOT TRUE"
	}
	return where
}

// closedNode is the condition on a node that takes no more pods.
func closedNode(args *parameters) string {
	drained := encoded(map[string]any{"taints": []map[string]string{{"key": capacity.DrainTaint}}})
	return "(coalesce(observed->>'cordoned' = 'true', false) OR observed @> " + args.add(drained) + "::jsonb)"
}

// holders adds to nodes who holds places on them, and until when by what they declare.
func holders(ctx context.Context, tx pgx.Tx, nodes []query.Node) error {
	clusters, names, at := make([]string, len(nodes)), make([]string, len(nodes)), map[query.NodeName]int{}
	for i, n := range nodes {
		clusters[i], names[i] = n.Cluster, n.Name
		at[query.NodeName{Cluster: n.Cluster, Name: n.Name}] = i
	}
	rows, err := tx.Query(ctx, `SELECT r.cluster, r.node, r.pod_set, r.pods, w.id::text, w.namespace, w.name, w.queue, w.phase,
			w.admitted_at, w.running_at, w.finished_at, w.evict_at, w.life
		FROM reservations r JOIN workloads w ON w.id = r.workload
		WHERE (r.cluster, r.node) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		ORDER BY w.admitted_at, w.submission, r.pod_set COLLATE "C"`, clusters, names)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var node query.NodeName
		var of workload.Record
		h := query.Holder{}
		var admitted, running, finished, evictAt *time.Time
		if err := rows.Scan(&node.Cluster, &node.Name, &h.PodSet, &h.Pods, &h.ID, &h.Namespace, &h.Name, &h.Queue, &h.Phase,
			&admitted, &running, &finished, &evictAt, &of.Life); err != nil {
			return err
		}
		of.Phase, of.EvictAt = h.Phase, timeOf(evictAt)
		of.Times = workload.Times{Admitted: timeOf(admitted), Running: timeOf(running), Finished: timeOf(finished)}
		h.Since, h.Until = of.Times.Admitted, of.ExpectedEnd()
		if i, asked := at[node]; asked {
			nodes[i].Holders = append(nodes[i].Holders, h)
		}
	}
	return rows.Err()
}

// timeOf is a time of the database; zero for none.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
