package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

const (
	// startsWithin is how long a gang that has places may take to run before it counts as stuck:
	// images of tens of gigabytes are pulled in that time.
	startsWithin = 15 * time.Minute
	// endsWithin is how long the objects of a gang may take to be gone.
	endsWithin = 5 * time.Minute
)

// stuckReasons are those of a waiting gang that waits until a person changes something.
func stuckReasons() []string {
	return []string{string(workload.ReasonNeverFits), string(workload.ReasonRefused), string(workload.ReasonForbidden)}
}

// gangsToSee lists the gangs that do not go on by themselves, and those with misplaced pods. It
// reads the workloads once, and returns a bounded number of each.
func (s *Store) gangsToSee(ctx context.Context, answer *query.StatusAnswer) error {
	rows, err := s.pool.Query(ctx, `WITH found AS (
			SELECT id, namespace, name, queue, phase, coalesce(reason->>'message', '') AS why,
				CASE WHEN phase = 'queued' THEN submitted_at WHEN phase = 'running' THEN running_at
					WHEN phase IN ('admitted', 'dispatched') THEN admitted_at
					WHEN phase IN ('evicting', 'cancelling') THEN evict_at ELSE finished_at END AS since,
				CASE WHEN phase <> 'running' THEN 'stuck'
					WHEN right(reason->>'message', length($5::text)) = $5 THEN 'trusted' ELSE 'misplaced' END AS what
			FROM workloads
			WHERE phase = 'queued' AND hold IS NULL AND reason->>'kind' = ANY($1)
				OR phase = 'running' AND reason->>'kind' = $4
				OR phase IN ('admitted', 'dispatched') AND admitted_at < $2
				OR phase IN ('evicting', 'cancelling') AND evict_at < $3
				OR phase IN ('succeeded', 'failed', 'cancelled') AND finished_at < $3
		), counted AS (
			SELECT *, count(*) OVER (PARTITION BY what)::int AS in_all, row_number() OVER (PARTITION BY what ORDER BY since, id) AS place FROM found
		)
		SELECT id::text, namespace, name, queue, phase, since, why, what, in_all FROM counted WHERE place <= $6 ORDER BY what, place`,
		stuckReasons(), answer.At.Add(-startsWithin), answer.At.Add(-endsWithin), string(workload.ReasonBesidePlan), state.PlacedByScheduler, query.MaxGangsToSee)
	if err != nil {
		return err
	}
	var g query.GangToSee
	var since *time.Time
	var what string
	var inAll int
	_, err = pgx.ForEachRow(rows, []any{&g.ID, &g.Namespace, &g.Name, &g.Queue, &g.Phase, &since, &g.Why, &what, &inAll}, func() error {
		of := map[string]*query.GangsToSee{"stuck": &answer.Stuck, "misplaced": &answer.Misplaced, "trusted": &answer.TrustedPlaces}[what]
		g.Since = timeOf(since)
		of.Gangs, of.InAll = append(of.Gangs, g), inAll
		return nil
	})
	return err
}
