package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// positionsCounted is how far from the head of its queue a workload has a position in
// answers; one that is further back has none.
const positionsCounted = 1000

// Workloads returns a page of workloads, live and finished.
func (s *Store) Workloads(ctx context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
	if r.Limit <= 0 || r.Limit > query.MaxPage {
		r.Limit = query.MaxPage
	}
	if r.ID != "" && uuid.Validate(string(r.ID)) != nil {
		return query.WorkloadsAnswer{Workloads: []workload.Record{}}, nil
	}
	var found []state.StoredWorkload
	// One snapshot: a workload that moves to the archive meanwhile is in one place.
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		live, err := liveWorkloads(ctx, tx, r)
		if err != nil {
			return err
		}
		if len(live) > 0 {
			if err := s.tellQuarantined(ctx, live); err != nil {
				return err
			}
		}
		finished, err := finishedWorkloads(ctx, tx, r)
		found = append(live, finished...)
		return err
	})
	if err != nil {
		return query.WorkloadsAnswer{}, fmt.Errorf("list workloads: %w", err)
	}
	slices.SortFunc(found, func(a, b state.StoredWorkload) int { return cmp.Compare(a.Order, b.Order) })
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

// filter is the part of a statement that selects the workloads of a request;
// what is not asked for is left out, so that the indexes serve.
func filter(r query.WorkloadsRequest) (where string, args []any) {
	where = "submission > $1"
	args = []any{r.After}
	add := func(condition string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(" AND "+condition, len(args))
	}
	if r.ID != "" {
		add("id = $%d::uuid", string(r.ID))
	}
	if r.Name != "" {
		add("name = $%d", r.Name)
	}
	if r.Namespace != "" {
		add("namespace = $%d", r.Namespace)
	}
	if r.Queue != "" {
		add("queue = $%d", r.Queue)
	}
	if len(r.Phases) > 0 {
		phases := make([]string, len(r.Phases))
		for i, phase := range r.Phases {
			phases[i] = string(phase)
		}
		add("phase = ANY($%d)", phases)
	}
	args = append(args, r.Limit+1)
	return where + fmt.Sprintf(" ORDER BY submission LIMIT $%d", len(args)), args
}

func liveWorkloads(ctx context.Context, tx pgx.Tx, r query.WorkloadsRequest) ([]state.StoredWorkload, error) {
	where, args := filter(r)
	rows, err := tx.Query(ctx, `SELECT id FROM workloads WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	live, err := newReader().loadLive(ctx, tx, uuidsOf(ids))
	if err != nil {
		return nil, err
	}
	return live, positions(ctx, tx, live)
}

// positions fills in the places in the queues.
func positions(ctx context.Context, tx querier, live []state.StoredWorkload) error {
	queues := map[string]bool{}
	for _, w := range live {
		if w.Phase == workload.Queued {
			queues[w.Queue] = true
		}
	}
	if len(queues) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `SELECT w.id, w.place FROM unnest($1::text[]) AS q (name), LATERAL (
			SELECT id, row_number() OVER (ORDER BY priority DESC, submission) AS place FROM (
				SELECT id, priority, submission FROM workloads WHERE queue = q.name AND phase = 'queued'
				ORDER BY priority DESC, submission LIMIT $2) first) w`, slices.Collect(maps.Keys(queues)), positionsCounted)
	if err != nil {
		return err
	}
	places := map[workload.ID]int32{}
	var id workload.ID
	var place int32
	if _, err := pgx.ForEachRow(rows, []any{&id, &place}, func() error { places[id] = place; return nil }); err != nil {
		return err
	}
	for i := range live {
		live[i].Position = places[live[i].ID]
	}
	return nil
}

func finishedWorkloads(ctx context.Context, tx pgx.Tx, r query.WorkloadsRequest) ([]state.StoredWorkload, error) {
	where, args := filter(r)
	rows, err := tx.Query(ctx, `SELECT submission, record FROM archive WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w state.StoredWorkload, err error) {
		return w, row.Scan(&w.Order, &w.Record)
	})
}

// History returns what happened to a workload.
func (s *Store) History(ctx context.Context, r query.HistoryRequest) (query.HistoryAnswer, error) {
	if uuid.Validate(string(r.ID)) != nil {
		return query.HistoryAnswer{Entries: []query.HistoryEntry{}}, nil
	}
	rows, err := s.pool.Query(ctx, `SELECT at, phase, attempt, reason FROM history
		WHERE workload = $1::uuid ORDER BY seq LIMIT $2`, string(r.ID), query.MaxPage)
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
				WHERE o.queue = q.name GROUP BY p.key) sums), '{}'), q.rules
		FROM queues q LEFT JOIN workloads w ON w.queue = q.name
		GROUP BY q.name ORDER BY q.name`)
	if err != nil {
		return query.QueuesAnswer{}, fmt.Errorf("list queues: %w", err)
	}
	queues, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q query.Queue, err error) {
		var rules workload.Rules
		err = row.Scan(&q.Name, &q.Namespaces, &q.Strategy, &q.Waiting, &q.Live, &q.Reserved, &rules)
		q.Submitters = rules.Submitters
		return q, err
	})
	if err != nil {
		return query.QueuesAnswer{}, fmt.Errorf("list queues: %w", err)
	}
	if err := s.quotaOf(ctx, queues); err != nil {
		return query.QueuesAnswer{}, fmt.Errorf("list queues: %w", err)
	}
	return query.QueuesAnswer{Queues: queues}, nil
}

// Strays returns the rule for strays of each namespace of a queue that has another one
// than to count them; of several queues the strictest.
func (s *Store) Strays(ctx context.Context) (query.StraysAnswer, error) {
	rows, err := s.pool.Query(ctx, `SELECT namespaces, rules ->> 'strayPods' FROM queues WHERE rules ->> 'strayPods' IN ('warn', 'evict')`)
	if err != nil {
		return query.StraysAnswer{}, fmt.Errorf("read the rules for stray pods: %w", err)
	}
	answer := query.StraysAnswer{Rules: map[string]string{}}
	var namespaces []string
	var rule string
	_, err = pgx.ForEachRow(rows, []any{&namespaces, &rule}, func() error {
		for _, namespace := range namespaces {
			answer.Rules[namespace] = workload.Stricter(rule, answer.Rules[namespace])
		}
		return nil
	})
	if err != nil {
		return query.StraysAnswer{}, fmt.Errorf("read the rules for stray pods: %w", err)
	}
	return answer, nil
}

// quotaOf fills in what the policy and the quota ledger say of the queues.
func (s *Store) quotaOf(ctx context.Context, queues []query.Queue) error {
	var policy quota.Config
	err := s.pool.QueryRow(ctx, `SELECT config FROM policy`).Scan(&policy)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the policy: %w", err)
	}
	known := make([]state.Queue, len(queues))
	for i, q := range queues {
		known[i] = state.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy}
	}
	tree, err := quota.New(state.PolicyOf(known, policy))
	if err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	rows, err := s.pool.Query(ctx, `SELECT scope, flavor, resource, used FROM quota_usage WHERE used > 0 AND starts_with(scope, $1)`, quota.QueueScope)
	if err != nil {
		return err
	}
	var scope string
	var used quota.Charge
	if _, err := pgx.ForEachRow(rows, []any{&scope, &used.Flavor, &used.Resource, &used.Amount}, func() error {
		tree.Ensure(strings.TrimPrefix(scope, quota.QueueScope)).Allocate([]quota.Charge{used})
		return nil
	}); err != nil {
		return err
	}
	for i := range queues {
		describe(&queues[i], tree)
	}
	return nil
}

func describe(q *query.Queue, tree *quota.Tree) {
	q.ClusterQueue = q.Name
	for _, namespace := range q.Namespaces {
		if local := tree.Local(namespace, q.Name); local != nil {
			q.ClusterQueue = local.ClusterQueue
			if local.StopPolicy != quota.StopNone {
				q.StopPolicy = local.StopPolicy
			}
			break
		}
	}
	of := tree.Ensure(q.ClusterQueue)
	q.Cohort, q.Quota, q.Share = of.Cohort, of.Lines(), of.Share()
	if of.Strategy != "" {
		q.Strategy = of.Strategy
	}
	if of.StopPolicy != "" && of.StopPolicy != quota.StopNone {
		q.StopPolicy = of.StopPolicy
	}
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
