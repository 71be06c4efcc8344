package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// LiveState is what the start times of workloads are estimated from, of one moment.
type LiveState struct {
	// Stored has all workloads that hold places, and of each queue the first ones that
	// wait.
	state.Stored
	// Left are how many waiting workloads were left out.
	Left int
	// Part is the most waiting workloads that were read of each queue.
	Part int
}

// LiveState reads what starts are estimated from, with at most perQueue waiting workloads of
// each queue and about most in sum, of which each queue has an equal part. Any queue-manager
// may call it, leader or not.
func (s *Store) LiveState(ctx context.Context, perQueue, most int) (live LiveState, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		settings, err := loadSettings(ctx, tx)
		if err != nil {
			return err
		}
		live.Queues, live.Policy = settings.Queues, settings.Policy
		if live.Nodes, err = loadNodes(ctx, tx); err != nil {
			return fmt.Errorf("load nodes: %w", err)
		}
		if live.PastUsage, err = loadPastUsage(ctx, tx); err != nil {
			return err
		}
		if live.Learned, err = loadLearned(ctx, tx); err != nil {
			return err
		}
		live.Part = max(1, min(perQueue, most/max(1, len(live.Queues))))
		rows, err := tx.Query(ctx, `SELECT id FROM workloads WHERE phase <> 'queued'
			UNION ALL SELECT w.id FROM queues q, LATERAL (SELECT id FROM workloads
				WHERE queue = q.name AND phase = 'queued' ORDER BY priority DESC, submission LIMIT $1) w`, live.Part)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if live.Workloads, err = newReader().loadLive(ctx, tx, uuidsOf(ids)); err != nil {
			return err
		}
		return tx.QueryRow(ctx, lastOrder+`, (SELECT count(*) - $1 FROM workloads)`, len(ids)).Scan(&live.LastOrder, &live.Left)
	})
	if err != nil {
		return LiveState{}, fmt.Errorf("read what starts are estimated from: %w", err)
	}
	return live, nil
}

// Waiting reports whether a workload waits, and the version of the ledger.
func (s *Store) Waiting(ctx context.Context) (waits bool, version int64, err error) {
	err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM workloads WHERE phase = 'queued'), (SELECT coalesce(max(version), 0) FROM commits)`).
		Scan(&waits, &version)
	if err != nil {
		return false, 0, fmt.Errorf("look for waiting workloads: %w", err)
	}
	return waits, version, nil
}

// Ended returns those of the given workloads that have ended, and what was submitted after
// one place in the order of submission and up to another and has ended: of all of these the
// most last submitted ones, in that order. It reads by indexes only, because the archive has
// weeks of workloads.
func (s *Store) Ended(ctx context.Context, gone []workload.ID, after, upTo int64, most int) ([]workload.Record, error) {
	rows, err := s.pool.Query(ctx, `SELECT record FROM (
			(SELECT id, submission, record FROM archive WHERE submission > $2 AND submission <= $3 ORDER BY submission DESC LIMIT $4)
			UNION ALL
			(SELECT id, submission, record FROM archive WHERE id = ANY($1::uuid[]) AND NOT coalesce(submission > $2 AND submission <= $3, false))
		) ended ORDER BY submission DESC NULLS LAST LIMIT $4`, uuidsOf(gone), after, upTo, most)
	if err != nil {
		return nil, fmt.Errorf("list what has ended of %d workloads and those submitted after %d: %w", len(gone), after, err)
	}
	ended, err := pgx.CollectRows(rows, pgx.RowTo[workload.Record])
	if err != nil {
		return nil, fmt.Errorf("list what has ended of %d workloads and those submitted after %d: %w", len(gone), after, err)
	}
	slices.Reverse(ended)
	return ended, nil
}
