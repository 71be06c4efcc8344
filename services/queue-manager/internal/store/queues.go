package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

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
	tree, err := s.quotaOf(ctx, queues)
	if err != nil {
		return query.QueuesAnswer{}, fmt.Errorf("list queues: %w", err)
	}
	policy := tree.Config()
	return query.QueuesAnswer{Queues: queues, Cohorts: tree.Cohorts(), Flavors: policy.Flavors, PriorityClasses: policy.Priorities}, nil
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

// quotaOf fills in what the policy and the quota ledger say of the queues, and returns
// both as a tree.
func (s *Store) quotaOf(ctx context.Context, queues []query.Queue) (*quota.Tree, error) {
	var policy quota.Config
	err := s.pool.QueryRow(ctx, `SELECT config FROM policy`).Scan(&policy)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	known := make([]state.Queue, len(queues))
	for i, q := range queues {
		known[i] = state.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy}
	}
	tree, err := quota.New(state.PolicyOf(known, policy))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	rows, err := s.pool.Query(ctx, `SELECT scope, flavor, resource, used FROM quota_usage WHERE used > 0 AND starts_with(scope, $1)`, quota.QueueScope)
	if err != nil {
		return nil, err
	}
	var scope string
	var used quota.Charge
	if _, err := pgx.ForEachRow(rows, []any{&scope, &used.Flavor, &used.Resource, &used.Amount}, func() error {
		tree.Ensure(strings.TrimPrefix(scope, quota.QueueScope)).Allocate([]quota.Charge{used})
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range queues {
		describe(&queues[i], tree)
	}
	return tree, nil
}

func describe(q *query.Queue, tree *quota.Tree) {
	q.ClusterQueue, q.Hold = q.Name, tree.StoppedBy(q.Name)
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
	q.Inactive = tree.Inactive(q.ClusterQueue)
	q.Cohort, q.Quota, q.Share = of.Cohort, of.Lines(), of.Share()
	if of.Strategy != "" {
		q.Strategy = of.Strategy
	}
	if of.StopPolicy != "" && of.StopPolicy != quota.StopNone {
		q.StopPolicy = of.StopPolicy
	}
}
