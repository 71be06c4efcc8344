package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/spec/workload"
)

// MessageRef is the id of a published message, and the workload that it is about.
type MessageRef struct {
	EventID  string
	Workload workload.ID
}

// KnownMessages returns which of the messages, by id, are in the outbox or in the history of
// their workloads.
func (s *Store) KnownMessages(ctx context.Context, messages []MessageRef) (map[string]bool, error) {
	known := map[string]bool{}
	if len(messages) == 0 {
		return known, nil
	}
	ids, workloads := make([]string, len(messages)), make([]workload.ID, len(messages))
	for i, m := range messages {
		ids[i], workloads[i] = m.EventID, m.Workload
	}
	rows, err := s.pool.Query(ctx, `SELECT event_id FROM outbox WHERE event_id = ANY($1)
		UNION ALL SELECT event_id FROM history WHERE workload = ANY($2::uuid[]) AND event_id = ANY($1)`, ids, uuidsOf(workloads))
	if err != nil {
		return nil, fmt.Errorf("look up %d messages: %w", len(ids), err)
	}
	var id string
	if _, err = pgx.ForEachRow(rows, []any{&id}, func() error { known[id] = true; return nil }); err != nil {
		return nil, fmt.Errorf("look up %d messages: %w", len(ids), err)
	}
	return known, nil
}

// LastCommit is when the last commit began.
func (s *Store) LastCommit(ctx context.Context) (at time.Time, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT at FROM commits ORDER BY version DESC LIMIT 1`).Scan(&at); err != nil {
		return at, fmt.Errorf("look up the last commit: %w", err)
	}
	return at, nil
}

// New reports whether nothing was ever committed to the database but its schema.
func (s *Store) New(ctx context.Context) (fresh bool, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT max(version) <= 1 FROM commits`).Scan(&fresh); err != nil {
		return false, fmt.Errorf("look up the first commit: %w", err)
	}
	return fresh, nil
}

// HistoryEvent is a step of a workload's life with the event that reported it.
type HistoryEvent struct {
	Seq     int64
	EventID string
	At      time.Time
	Record  workload.Record
}

// HistorySince returns steps of workloads' lives behind the given one and not older
// than the given age, in order, and the number of the last one that it read, zero for none. What is static of
// a workload is as it is now, and so are its places.
func (s *Store) HistorySince(ctx context.Context, after int64, age time.Duration, limit int) (steps []HistoryEvent, last int64, err error) {
	rows, err := s.pool.Query(ctx, `SELECT seq, workload, at, phase, attempt, coalesce(cluster, ''), reason, event_id FROM history
		WHERE seq > $1 AND at > now() - $2::interval ORDER BY seq LIMIT $3`, after, age, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("read history: %w", err)
	}
	var read HistoryEvent
	var eventID *string
	ids := map[workload.ID]bool{}
	_, err = pgx.ForEachRow(rows, []any{&read.Seq, &read.Record.ID, &read.At, &read.Record.Phase, &read.Record.Attempt, &read.Record.Cluster,
		&read.Record.Reason, &eventID}, func() error {
		last = read.Seq
		if eventID != nil {
			read.EventID = *eventID
			ids[read.Record.ID] = true
			steps = append(steps, read)
		}
		read.Record.Reason = nil // Scan would write into the old one
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read history: %w", err)
	}
	records, err := s.records(ctx, slices.Collect(maps.Keys(ids)))
	if err != nil {
		return nil, 0, err
	}
	kept := steps[:0]
	for _, t := range steps {
		if whole, ok := records[t.Record.ID]; ok {
			step := t.Record
			t.Record = whole
			t.Record.Phase, t.Record.Attempt, t.Record.Cluster, t.Record.Reason = step.Phase, step.Attempt, step.Cluster, step.Reason
			kept = append(kept, t)
		}
	}
	return kept, last, nil
}

// records returns the given workloads, live or finished, but for those whose row the database
// refuses to read: these are in quarantine (load_apart.go).
func (s *Store) records(ctx context.Context, ids []workload.ID) (map[workload.ID]workload.Record, error) {
	records := map[workload.ID]workload.Record{}
	err := s.addRecords(ctx, records, ids, false)
	if Suspect(err) && s.addRecords(ctx, records, []workload.ID{noWorkload}, true) == nil {
		err = s.addReadable(ctx, records, ids)
	}
	if err != nil {
		return nil, fmt.Errorf("read %d workloads: %w", len(ids), err)
	}
	return records, nil
}

// addReadable halves what is refused, down to single workloads, which it leaves out.
func (s *Store) addReadable(ctx context.Context, records map[workload.ID]workload.Record, ids []workload.ID) error {
	err := s.addRecords(ctx, records, ids, true)
	half := len(ids) / 2
	switch {
	case !Suspect(err):
		return err
	case half == 0:
		return nil
	}
	if err := s.addReadable(ctx, records, ids[:half]); err != nil {
		return err
	}
	return s.addReadable(ctx, records, ids[half:])
}

// addRecords reads workloads; apart is whether rows are found by their ids alone.
func (s *Store) addRecords(ctx context.Context, records map[workload.ID]workload.Record, ids []workload.ID, apart bool) error {
	if len(ids) == 0 {
		return nil
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		if apart {
			if err := findByID(ctx, tx); err != nil {
				return err
			}
		}
		live, err := newReader().loadLive(ctx, tx, uuidsOf(ids))
		if err != nil {
			return err
		}
		for _, w := range live {
			records[w.ID] = w.Record
		}
		rows, err := tx.Query(ctx, `SELECT record FROM archive WHERE id = ANY($1::uuid[])`, uuidsOf(ids))
		if err != nil {
			return err
		}
		finished, err := pgx.CollectRows(rows, pgx.RowTo[workload.Record])
		for _, r := range finished {
			records[r.ID] = r
		}
		return err
	})
}
