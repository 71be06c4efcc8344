package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
)

// queuePastUsage stores the past usage of queues.
func queuePastUsage(batch *pgx.Batch, all []quota.PastUsage) {
	if len(all) == 0 {
		return
	}
	queues, histories := make([]string, len(all)), make([]string, len(all))
	for i, past := range all {
		queues[i], histories[i] = past.Queue, encoded(past.History)
	}
	batch.Queue(`INSERT INTO past_usage (queue, history) SELECT * FROM unnest($1::text[], $2::jsonb[])
		ON CONFLICT (queue) DO UPDATE SET history = excluded.history`, queues, histories)
}

// queueForgottenUsage removes the past usage of queues that are configured no more.
func queueForgottenUsage(batch *pgx.Batch, tree *quota.Tree) {
	batch.Queue(`DELETE FROM past_usage WHERE NOT queue = ANY($1::text[])`, tree.PastUsers())
}

// PastUsage reads the past usage of all queues.
func (s *Store) PastUsage(ctx context.Context) ([]quota.PastUsage, error) {
	return loadPastUsage(ctx, s.pool)
}

func loadPastUsage(ctx context.Context, tx querier) ([]quota.PastUsage, error) {
	rows, err := tx.Query(ctx, `SELECT queue, history FROM past_usage ORDER BY queue COLLATE "C"`)
	if err != nil {
		return nil, fmt.Errorf("load the past usage of queues: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (past quota.PastUsage, err error) {
		return past, row.Scan(&past.Queue, &past.History)
	})
	if err != nil {
		return nil, fmt.Errorf("load the past usage of queues: %w", err)
	}
	return all, nil
}
