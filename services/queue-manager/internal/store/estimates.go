package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// MadeEstimate is an estimate of when a workload starts. Where there was no time, Quantiles is
// nil and Unknown is why.
type MadeEstimate struct {
	Workload  workload.ID
	Queue     string
	Made      time.Time
	Wait      time.Duration // as it was simulated
	Quantiles []time.Duration
	Unknown   string
}

// ScoredEstimate is the first estimate of a workload that has started.
type ScoredEstimate struct {
	MadeEstimate
	Started time.Time
}

const (
	// estimatesKept bounds the rows of estimates, of all workloads: about 100 MB.
	estimatesKept = 500_000
	// ScoresKept bounds the scored estimates of a queue.
	ScoresKept = 500
	// estimatesShown bounds the estimates of one workload in an answer: the last ones.
	estimatesShown = 200
)

// Leads returns the epoch of a queue-manager if it leads.
func (s *Store) Leads(ctx context.Context, holder string) (epoch int64, leads bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT epoch FROM leader WHERE holder = $1`, holder).Scan(&epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("check whether %s leads: %w", holder, err)
	}
	return epoch, true, nil
}

// KeepEstimates adds estimates, and those that were scored, and deletes what is too old to be
// kept. It runs beside the leader's transactions. What the database refuses for its data is left
// out for good, so that it does not keep the others from being kept: refused counts it.
func (s *Store) KeepEstimates(ctx context.Context, epoch int64, made []MadeEstimate, scored []ScoredEstimate) (refused int, err error) {
	leftOut, err := keepEach(made, func(some []MadeEstimate) error { return s.keepMade(ctx, epoch, some) })
	if err != nil {
		return leftOut, fmt.Errorf("keep %d estimates: %w", len(made), err)
	}
	refused = leftOut
	leftOut, err = keepEach(scored, func(some []ScoredEstimate) error { return s.keepScored(ctx, epoch, some) })
	if err != nil {
		return refused + leftOut, fmt.Errorf("keep %d scores of estimates: %w", len(scored), err)
	}
	return refused + leftOut, nil
}

// keepEach keeps all at once, or all but those that are refused for what they are.
func keepEach[T any](all []T, keep func([]T) error) (refused int, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	if err = keep(all); !Suspect(err) {
		return 0, err
	}
	if len(all) == 1 {
		return 1, nil
	}
	first, err := keepEach(all[:len(all)/2], keep)
	if err != nil {
		return first, err
	}
	second, err := keepEach(all[len(all)/2:], keep)
	return first + second, err
}

func (s *Store) keepMade(ctx context.Context, epoch int64, made []MadeEstimate) error {
	rows := make([]estimateRow, len(made))
	for i, e := range made {
		rows[i] = rowOf(e)
	}
	return s.transact(ctx, epoch, func(batch *pgx.Batch) {
		batch.Queue(`INSERT INTO estimates (workload, made, queue, wait, quantiles, unknown)
			SELECT * FROM jsonb_to_recordset($1::jsonb) AS e (workload uuid, made timestamptz, queue text, wait bigint, quantiles bigint[], unknown text)
			ON CONFLICT DO NOTHING`, encoded(rows))
		deleteEstimates(batch, estimatesKept)
	})
}

// deleteEstimates deletes all but the last of the rows, and the first with a time of each live
// workload since its last start that was scored: it is scored by that.
func deleteEstimates(batch *pgx.Batch, keep int) {
	batch.Queue(`DELETE FROM estimates e WHERE seq <= (SELECT max(seq) FROM estimates) - $1::bigint
		AND NOT EXISTS (SELECT FROM workloads w WHERE w.id = e.workload AND e.quantiles IS NOT NULL AND e.made =
			(SELECT min(f.made) FROM estimates f WHERE f.workload = w.id AND f.quantiles IS NOT NULL
				AND f.made > coalesce((SELECT max(started) FROM estimate_scores s WHERE s.workload = w.id), '-infinity')))`, keep)
}

func (s *Store) keepScored(ctx context.Context, epoch int64, scored []ScoredEstimate) error {
	queues := map[string]bool{}
	rows := make([]estimateRow, len(scored))
	for i, e := range scored {
		queues[e.Queue] = true
		rows[i] = rowOf(e.MadeEstimate)
		rows[i].Started = &e.Started
	}
	return s.transact(ctx, epoch, func(batch *pgx.Batch) {
		batch.Queue(`INSERT INTO estimate_scores (workload, queue, made, started, wait, quantiles)
			SELECT * FROM jsonb_to_recordset($1::jsonb) AS e (workload uuid, queue text, made timestamptz, started timestamptz, wait bigint, quantiles bigint[])
			ON CONFLICT DO NOTHING`, encoded(rows))
		for queue := range queues {
			batch.Queue(`DELETE FROM estimate_scores WHERE queue = $1 AND seq <=
				(SELECT seq FROM estimate_scores WHERE queue = $1 ORDER BY seq DESC OFFSET $2 LIMIT 1)`, queue, ScoresKept)
		}
	})
}

// Scores returns the kept scores, the oldest of a queue first.
func (s *Store) Scores(ctx context.Context) ([]ScoredEstimate, error) {
	rows, err := s.pool.Query(ctx, `SELECT workload, queue, made, started, wait, quantiles FROM estimate_scores ORDER BY queue, seq`)
	if err != nil {
		return nil, fmt.Errorf("read the scores of estimates: %w", err)
	}
	scores, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e ScoredEstimate, err error) {
		var wait int64
		var quantiles []int64
		err = row.Scan(&e.Workload, &e.Queue, &e.Made, &e.Started, &wait, &quantiles)
		e.Wait, e.Quantiles = time.Duration(wait)*time.Microsecond, durations(quantiles)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the scores of estimates: %w", err)
	}
	return scores, nil
}

// unscored are the estimates that count for what waits, or has started a short while ago: those
// since its last start that was scored.
const unscored = `SELECT DISTINCT ON (e.workload) e.workload, e.queue, e.made, e.wait, e.quantiles, coalesce(e.unknown, '')
	FROM workloads w JOIN estimates e ON e.workload = w.id
	WHERE (w.phase = 'queued' AND e.made > coalesce(w.admitted_at, '-infinity') OR w.admitted_at > now() - interval '1 hour' AND e.made <= w.admitted_at)
		AND e.made > coalesce((SELECT max(started) FROM estimate_scores s WHERE s.workload = w.id), '-infinity')`

// OpenEstimates returns, of workloads that are not scored yet, the first estimate with a time and
// the last estimate.
func (s *Store) OpenEstimates(ctx context.Context) (first, last []MadeEstimate, err error) {
	if first, err = s.estimates(ctx, unscored+` AND e.quantiles IS NOT NULL ORDER BY e.workload, e.made`); err != nil {
		return nil, nil, err
	}
	last, err = s.estimates(ctx, unscored+` ORDER BY e.workload, e.made DESC`)
	return first, last, err
}

// estimates reads estimates with a statement.
func (s *Store) estimates(ctx context.Context, statement string, args ...any) ([]MadeEstimate, error) {
	rows, err := s.pool.Query(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("read estimates: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e MadeEstimate, err error) {
		var wait *int64
		var quantiles []int64
		if err := row.Scan(&e.Workload, &e.Queue, &e.Made, &wait, &quantiles, &e.Unknown); err != nil {
			return e, err
		}
		if wait != nil {
			e.Wait, e.Quantiles = time.Duration(*wait)*time.Microsecond, durations(quantiles)
		}
		return e, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read estimates: %w", err)
	}
	return found, nil
}

// PastEstimates returns the estimates of a workload, the oldest first. p50 and p90 are the
// places of these quantiles.
func (s *Store) PastEstimates(ctx context.Context, id workload.ID, p50, p90 int) ([]query.PastEstimate, error) {
	if uuid.Validate(string(id)) != nil {
		return nil, nil
	}
	found, err := s.estimates(ctx, `SELECT workload, queue, made, wait, quantiles, coalesce(unknown, '') FROM
		(SELECT * FROM estimates WHERE workload = $1::uuid ORDER BY made DESC LIMIT $2) e ORDER BY made`, string(id), estimatesShown)
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", id, err)
	}
	past := make([]query.PastEstimate, len(found))
	for i, e := range found {
		past[i] = query.PastEstimate{MadeAt: e.Made, Unknown: e.Unknown}
		if len(e.Quantiles) > max(p50, p90) {
			past[i].P50, past[i].P90 = e.Made.Add(e.Quantiles[p50]), e.Made.Add(e.Quantiles[p90])
		}
	}
	return past, nil
}

// estimateRow is an estimate as it is written.
type estimateRow struct {
	Workload  workload.ID `json:"workload"`
	Queue     string      `json:"queue"`
	Made      time.Time   `json:"made"`
	Started   *time.Time  `json:"started,omitempty"`
	Wait      *int64      `json:"wait"`
	Quantiles []int64     `json:"quantiles"`
	Unknown   string      `json:"unknown,omitempty"`
}

func rowOf(e MadeEstimate) estimateRow {
	row := estimateRow{Workload: e.Workload, Queue: e.Queue, Made: e.Made, Unknown: e.Unknown}
	if e.Quantiles == nil {
		return row
	}
	wait := e.Wait.Microseconds()
	row.Wait = &wait
	for _, q := range e.Quantiles {
		row.Quantiles = append(row.Quantiles, q.Microseconds())
	}
	return row
}

func durations(numbers []int64) []time.Duration {
	all := make([]time.Duration, len(numbers))
	for i, n := range numbers {
		all[i] = time.Duration(n) * time.Microsecond
	}
	return all
}
