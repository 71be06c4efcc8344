package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// UsageHistory is one moment of what workloads held over time. It is for one goroutine.
type UsageHistory struct{ tx pgx.Tx }

// Usage lets a function read one moment of the history. Any queue-manager may call it.
func (s *Store) Usage(ctx context.Context, read func(*UsageHistory) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	if err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error { return read(&UsageHistory{tx}) }); err != nil {
		return fmt.Errorf("read what was used: %w", err)
	}
	return nil
}

// Flavors are the present ones, with what they cost.
func (u *UsageHistory) Flavors(ctx context.Context) ([]quota.Flavor, error) {
	policy, err := loadPolicy(ctx, u.tx)
	if err != nil {
		return nil, fmt.Errorf("load the flavors: %w", err)
	}
	return policy.Flavors, nil
}

const usageColumns = `SELECT workload, at, phase, attempt, coalesce(cluster, ''), usage FROM history WHERE usage IS NOT NULL`

// Steps visits the steps with usage at or after a time, in their order.
func (u *UsageHistory) Steps(ctx context.Context, since time.Time, visit func(state.HistoryRow) error) error {
	return u.visit(ctx, visit, usageColumns+` AND at >= $1 ORDER BY seq`, since)
}

// Within visits the steps with usage from a time until another, in their order.
func (u *UsageHistory) Within(ctx context.Context, since, until time.Time, visit func(state.HistoryRow) error) error {
	return u.visit(ctx, visit, usageColumns+` AND at >= $1 AND at < $2 ORDER BY seq`, since, until)
}

// Later lists the workloads that have a step with usage at or after a time, but not their first
// of all.
func (u *UsageHistory) Later(ctx context.Context, from time.Time) ([]workload.ID, error) {
	rows, err := u.tx.Query(ctx, `SELECT workload FROM history WHERE usage IS NOT NULL AND at >= $1
		GROUP BY workload HAVING NOT bool_or(usage ? 'since') ORDER BY min(seq)`, from)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[workload.ID])
}

// Last visits the last step with usage before a time of each of the workloads that have one.
func (u *UsageHistory) Last(ctx context.Context, ids []workload.ID, before time.Time, visit func(state.HistoryRow) error) error {
	return u.visit(ctx, visit, `SELECT h.* FROM unnest($1::uuid[]) w (id), LATERAL (
		`+usageColumns+` AND workload = w.id AND at < $2 ORDER BY seq DESC LIMIT 1) h`, uuidsOf(ids), before)
}

// knownUsage bounds what of usage is remembered, to be decoded once.
const knownUsage = 10_000

func (u *UsageHistory) visit(ctx context.Context, visit func(state.HistoryRow) error, sql string, args ...any) error {
	rows, err := u.tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	known := map[string]*workload.UsageStep{} // most steps of a workload, and of its like, hold the same
	var encoded raw
	for rows.Next() {
		var step state.HistoryRow
		if err := rows.Scan(&step.Workload, &step.At, &step.Phase, &step.Attempt, &step.Cluster, &encoded); err != nil {
			return err
		}
		if step.Usage = known[string(encoded)]; step.Usage == nil {
			step.Usage = &workload.UsageStep{}
			if err := json.Unmarshal(encoded, step.Usage); err != nil {
				return fmt.Errorf("read usage %.200s of workload %s: %w", encoded, step.Workload, err)
			}
			if len(known) < knownUsage {
				known[string(encoded)] = step.Usage
			}
		}
		if err := visit(step); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Holding lists the workloads that hold places.
func (u *UsageHistory) Holding(ctx context.Context) ([]workload.ID, error) {
	rows, err := u.tx.Query(ctx, `SELECT id FROM workloads WHERE holding ORDER BY submission`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[workload.ID])
}

// Live visits the admission of workloads that hold places, and the beginning of their run if they
// have run, as their rows have them. When a removal began is not in a row: such a workload
// seems to run.
func (u *UsageHistory) Live(ctx context.Context, ids []workload.ID, visit func(state.HistoryRow) error) error {
	if len(ids) == 0 {
		return nil
	}
	live, err := newReader().loadLive(ctx, u.tx, uuidsOf(ids))
	if err != nil {
		return err
	}
	for i := range live {
		w := &live[i].Record
		step := state.HistoryRow{Workload: w.ID, At: w.Times.Admitted, Phase: workload.Admitted, Attempt: w.Attempt, Cluster: w.Cluster}
		step.Usage = &workload.UsageStep{
			Queue: w.Queue, Namespace: w.Namespace, Submitter: w.Submitter, Held: workload.HeldBy(w.PodSets, w.Flavors),
		}
		ran := step
		if w.Attempt == 1 {
			first := *step.Usage
			first.Since, step.Usage = w.Times.Submitted, &first
		}
		if err := visit(step); err != nil {
			return err
		}
		if w.Times.Running.IsZero() {
			continue
		}
		ran.Phase, ran.At = workload.Running, w.Times.Running
		if err := visit(ran); err != nil {
			return err
		}
	}
	return nil
}

// Oldest is the time of the oldest step that is kept; zero for none.
func (u *UsageHistory) Oldest(ctx context.Context) (time.Time, error) {
	var oldest *time.Time
	if err := u.tx.QueryRow(ctx, `SELECT min(at) FROM (SELECT at FROM history WHERE usage IS NOT NULL ORDER BY seq LIMIT 1) h`).Scan(&oldest); err != nil || oldest == nil {
		return time.Time{}, err
	}
	return *oldest, nil
}
