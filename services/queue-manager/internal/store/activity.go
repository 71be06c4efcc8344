package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
)

// happened has what happened to workloads since $1, of the places that are asked for. A step
// of a life is there once for each attempt, whatever reasons it had.
const happened = `WITH steps AS (
	SELECT workload, attempt, phase, usage->>'queue' AS queue, usage->>'namespace' AS namespace, usage ? 'held' AS held,
		min(at) AS at, min((usage->>'since')::timestamptz) AS since
	FROM history WHERE usage IS NOT NULL AND at >= $1 GROUP BY 1, 2, 3, 4, 5, 6
), happened AS (
	SELECT 'submitted' AS what, submitted_at AS at, NULL::float8 AS wait, queue, namespace FROM workloads WHERE submitted_at >= $1
	UNION ALL SELECT 'submitted', (record #>> '{times,submitted}')::timestamptz, NULL, queue, namespace FROM archive
		WHERE finished_at >= $1 AND (record #>> '{times,submitted}')::timestamptz >= $1
	UNION ALL SELECT 'ended', finished_at, NULL, queue, namespace FROM workloads WHERE finished_at >= $1
	UNION ALL SELECT 'ended', finished_at, NULL, queue, namespace FROM archive WHERE finished_at >= $1
	UNION ALL SELECT 'left', h.at, NULL, a.queue, a.namespace FROM archive a JOIN history h ON h.workload = a.id AND h.phase = a.phase
		WHERE a.finished_at >= $1 AND h.at >= $1 AND h.usage IS NULL
	UNION ALL SELECT 'admitted', at, extract(epoch FROM at - since), queue, namespace FROM steps WHERE held AND phase = 'admitted'
	UNION ALL SELECT 'evicted', at, NULL, queue, namespace FROM steps WHERE held AND phase = 'evicting'
	UNION ALL SELECT 'requeued', at, NULL, queue, namespace FROM steps WHERE NOT held AND phase = 'queued'
) `

// ofPlaces is the condition that a row is of the queue $2, and of the places $3, $4 and $5.
const ofPlaces = ` ($2 = '' OR queue = $2) AND (NOT $6 OR queue = ANY($3::text[]) OR (queue, namespace) IN (SELECT * FROM unnest($4::text[], $5::text[])))`

// Activity returns what happened from a time until now. How many wait is counted back from the
// present.
func (s *Store) Activity(ctx context.Context, r query.ActivityRequest, now time.Time) (query.ActivityAnswer, error) {
	if err := r.Check(now); err != nil {
		return query.ActivityAnswer{}, err
	}
	answer := query.ActivityAnswer{Since: r.Since, StepSeconds: r.StepSeconds}
	step := time.Duration(r.StepSeconds) * time.Second
	for at := r.Since; !at.After(now); at = at.Add(step) {
		answer.Steps = append(answer.Steps, query.ActivityStep{At: at})
	}
	queues, inQueue, namespaces := flatten(r.Within)
	places := []any{r.Since, r.Queue, queues, inQueue, namespaces, len(r.Within) > 0}
	waiting, changes := 0, make([]int, len(answer.Steps))
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM workloads WHERE phase = 'queued' AND $1::timestamptz IS NOT NULL AND`+ofPlaces, places...).Scan(&waiting); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, happened+`SELECT what, floor(extract(epoch FROM at - $1) / $7)::int, count(*)::int,
			percentile_disc(0.5) WITHIN GROUP (ORDER BY wait), percentile_disc(0.9) WITHIN GROUP (ORDER BY wait)
			FROM happened WHERE`+ofPlaces+` GROUP BY 1, 2`, append(places, r.StepSeconds)...)
		if err != nil {
			return err
		}
		var what string
		var at, count int
		var p50, p90 *float64
		_, err = pgx.ForEachRow(rows, []any{&what, &at, &count, &p50, &p90}, func() error {
			at = min(max(at, 0), len(answer.Steps)-1) // Postgres' clock may be ahead
			changes[at] += happens(&answer.Steps[at], what, count)
			if p50 != nil && p90 != nil {
				answer.Steps[at].WaitP50, answer.Steps[at].WaitP90 = max(0, *p50), max(0, *p90)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return query.ActivityAnswer{}, fmt.Errorf("read what happened since %s: %w", r.Since.Format(time.RFC3339), err)
	}
	for i := len(changes) - 1; i >= 0; i-- {
		answer.Steps[i].Waiting = max(0, waiting)
		waiting -= changes[i]
	}
	return answer, nil
}

// happens counts something in a step, and returns by how many more wait then.
func happens(s *query.ActivityStep, what string, count int) int {
	switch what {
	case "submitted":
		s.Submitted += count
		return count
	case "admitted":
		s.Admitted += count
		return -count
	case "evicted":
		s.Evicted += count
	case "ended":
		s.Ended += count
	case "requeued":
		return count
	case "left": // it ended without a place
		return -count
	}
	return 0
}
