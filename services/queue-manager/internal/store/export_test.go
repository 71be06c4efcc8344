package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// MigrateTo is for tests of migrations.
var MigrateTo = migrateTo

// Setting returns what a session has.
func (s *Store) Setting(ctx context.Context, name string) (value string, err error) {
	return value, s.pool.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
}

// TimelineOf is for tests of names that no server has today.
var TimelineOf = timelineOf

// Commit prepares and writes changes without a record of the decision.
func (s *Store) Commit(ctx context.Context, changes state.Changes) ([]Outgoing, error) {
	write, err := s.Prepare(changes, Record{})
	if err != nil {
		return nil, err
	}
	return write(ctx)
}

// FirstOf is for tests of what is left out: names have how many workloads are read of each.
func (s *Store) FirstOf(ctx context.Context, led map[state.LocalQueueKey]string, names map[string]int) (ids []workload.ID, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		first, err := firstOf(ctx, tx, led, names)
		for _, w := range first {
			ids = append(ids, w.id)
		}
		return err
	})
	return ids, err
}

// DeleteEstimates deletes estimates as KeepEstimates does.
func (s *Store) DeleteEstimates(ctx context.Context, epoch int64, keep int) error {
	return s.transact(ctx, epoch, func(batch *pgx.Batch) { deleteEstimates(batch, keep) })
}

// PlanOf is how Postgres finds the live workloads of a request, with what it has read.
func (s *Store) PlanOf(ctx context.Context, r query.WorkloadsRequest) (plan string, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		behind, _, err := placeOf(ctx, tx, r)
		if err != nil {
			return err
		}
		statement, args := selectLive(r, behind, func(condition string) string { return condition })
		rows, err := tx.Query(ctx, `EXPLAIN (ANALYZE, TIMING OFF) `+statement, args...)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	return plan, err
}
