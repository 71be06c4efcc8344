package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Queues returns all queues with what is in them, as of one moment.
func (s *Store) Queues(ctx context.Context) (answer query.QueuesAnswer, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		known, err := loadQueues(ctx, tx)
		if err != nil {
			return err
		}
		policy, err := loadPolicy(ctx, tx)
		if err != nil {
			return err
		}
		tree, err := quota.New(state.PolicyOf(known, policy))
		if err != nil {
			return fmt.Errorf("read the policy: %w", err)
		}
		rows := newQueueRows(known, policy.LocalQueues)
		for _, read := range []func(context.Context, pgx.Tx, *quota.Tree) error{rows.count, rows.sumReserved, readUsage, rows.countProvisioning, rows.readPastUse} {
			if err := read(ctx, tx, tree); err != nil {
				return err
			}
		}
		answer = rows.answer(tree)
		if len(policy.Budgets) == 0 {
			return nil
		}
		uses, err := loadBudgetUses(ctx, tx)
		if err == nil {
			addBudgets(answer.Queues, budgetsOf(policy, uses, time.Now()))
		}
		return err
	})
	if err != nil {
		return query.QueuesAnswer{}, fmt.Errorf("list queues: %w", err)
	}
	return answer, nil
}

// Carries returns which objects a queue carries to other clusters.
func (s *Store) Carries(ctx context.Context, queue string) (list []workload.Carried, err error) {
	err = s.pool.QueryRow(ctx, `SELECT coalesce(rules -> 'carries', '[]') FROM queues WHERE name = $1`, queue).Scan(&list)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what queue %q carries: %w", queue, err)
	}
	return list, nil
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
