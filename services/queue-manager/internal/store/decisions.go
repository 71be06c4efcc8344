package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/klauspost/compress/s2"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
)

// Record is what was done to the state since the last one; without inputs there is
// nothing to keep.
type Record struct {
	Number  int64 // in the epoch
	Version int64 // of the ledger, after it
	At      time.Time
	Inputs  []byte // as package decisionlog writes them
}

// queueRecord keeps what the changes were decided on, and their outcome.
func queueRecord(batch *pgx.Batch, changes state.Changes, r Record) {
	if r.Inputs == nil {
		return
	}
	batch.Queue(`INSERT INTO decisions (epoch, number, version, at, inputs, outcome) VALUES ($1, $2, $3, $4, $5, $6)`,
		changes.Epoch, r.Number, r.Version, r.At, s2.Encode(nil, r.Inputs), s2.Encode(nil, decisionlog.Outcome(changes)))
}

// Decision is a record as it was kept.
type Decision struct {
	Epoch, Number, Version int64
	At                     time.Time
	Inputs, Outcome        []byte
}

// decisionsLimit bounds the decisions that are read at once.
const decisionsLimit = 200

// Decisions calls each with the kept decisions of the epoch and later ones, in
// order, until it returns an error.
func (s *Store) Decisions(ctx context.Context, epoch int64, each func(Decision) error) error {
	return s.DecisionsAfter(ctx, epoch, -1, each)
}

// DecisionsAfter is Decisions, behind a decision of the epoch.
func (s *Store) DecisionsAfter(ctx context.Context, epoch, number int64, each func(Decision) error) error {
	for {
		some, err := s.decisions(ctx, epoch, number)
		if err != nil {
			return err
		}
		for _, d := range some {
			if err := each(d); err != nil {
				return err
			}
			epoch, number = d.Epoch, d.Number
		}
		if len(some) < decisionsLimit {
			return nil
		}
	}
}

func (s *Store) decisions(ctx context.Context, epoch, after int64) ([]Decision, error) {
	rows, err := s.pool.Query(ctx, `SELECT epoch, number, version, at, inputs, outcome FROM decisions
		WHERE (epoch, number) > ($1, $2) ORDER BY epoch, number LIMIT $3`, epoch, after, decisionsLimit)
	if err != nil {
		return nil, fmt.Errorf("read decisions from epoch %d: %w", epoch, err)
	}
	some, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Decision, err error) {
		var inputs, outcome []byte
		if err := row.Scan(&d.Epoch, &d.Number, &d.Version, &d.At, &inputs, &outcome); err != nil {
			return d, err
		}
		if d.Inputs, err = expand(inputs); err == nil {
			d.Outcome, err = expand(outcome)
		}
		if err != nil {
			err = fmt.Errorf("%w: decision %d of epoch %d: %w", ErrDamaged, d.Number, d.Epoch, err)
		}
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("read decisions from epoch %d: %w", epoch, err)
	}
	return some, nil
}

// largestShown bounds the record of a decision that is shown.
const largestShown = 1 << 20

// Recorded is a decision as it is shown; its inputs and outcome are left out where they are too
// large.
type Recorded struct {
	Decision
	Bytes    int
	TooLarge bool
}

// LastDecisions returns recorded decisions, the newest first, with one more than the limit where
// there are more.
func (s *Store) LastDecisions(ctx context.Context, r query.DecisionsRequest) ([]Recorded, error) {
	before := query.DecisionKey{Epoch: math.MaxInt64, Number: math.MaxInt64}
	if r.Before != nil {
		before = *r.Before
	}
	until := pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}
	if !r.Until.IsZero() {
		until = pgtype.Timestamptz{Valid: true, Time: r.Until}
	}
	rows, err := s.pool.Query(ctx, `SELECT epoch, number, version, at, bytes, bytes > $5, CASE WHEN bytes <= $5 THEN inputs END, CASE WHEN bytes <= $5 THEN outcome END
		FROM (SELECT *, octet_length(inputs) + octet_length(outcome) AS bytes FROM decisions
			WHERE (epoch, number) < ($1, $2) AND at <= $3 ORDER BY epoch DESC, number DESC LIMIT $4) d`,
		before.Epoch, before.Number, until, r.Limit+1, largestShown)
	if err != nil {
		return nil, fmt.Errorf("read the last decisions: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Recorded, err error) {
		var inputs, outcome []byte
		if err := row.Scan(&d.Epoch, &d.Number, &d.Version, &d.At, &d.Bytes, &d.TooLarge, &inputs, &outcome); err != nil || d.TooLarge {
			return d, err
		}
		if d.Inputs, err = expand(inputs); err == nil {
			d.Outcome, err = expand(outcome)
		}
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the last decisions: %w", err)
	}
	return all, nil
}

// ErrDamaged is wrapped for kept bytes that are not as they were written.
var ErrDamaged = errors.New("the record is damaged")

// expandedMost bounds what damaged bytes may have allocated.
const expandedMost = 1 << 30

func expand(compressed []byte) ([]byte, error) {
	size, err := s2.DecodedLen(compressed)
	if err != nil || size > expandedMost {
		return nil, fmt.Errorf("what was compressed cannot be read: %w", errors.Join(err, s2.ErrCorrupt))
	}
	return s2.Decode(nil, compressed)
}

// Checkpoint is where a replay may begin: the ledger at the beginning of an epoch.
type Checkpoint struct {
	Epoch, Version int64
	At             time.Time
}

// Checkpoints returns the stored checkpoints, the oldest first.
func (s *Store) Checkpoints(ctx context.Context) ([]Checkpoint, error) {
	rows, err := s.pool.Query(ctx, `SELECT epoch, version, at FROM bases WHERE part = 0 ORDER BY epoch`)
	if err != nil {
		return nil, fmt.Errorf("list checkpoints of decisions: %w", err)
	}
	checkpoints, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Checkpoint])
	if err != nil {
		return nil, fmt.Errorf("list checkpoints of decisions: %w", err)
	}
	return checkpoints, nil
}

// ReadCheckpoint returns the ledger of a checkpoint.
func (s *Store) ReadCheckpoint(ctx context.Context, of Checkpoint) (*decisionlog.Replica, error) {
	rows, err := s.pool.Query(ctx, `SELECT content FROM bases WHERE epoch = $1 ORDER BY part`, of.Epoch)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of epoch %d: %w", of.Epoch, err)
	}
	ledger := decisionlog.NewReplica(of.Version)
	var content []byte
	_, err = pgx.ForEachRow(rows, []any{&content}, func() error {
		expanded, err := expand(content)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		var part checkpointPart
		if err := json.Unmarshal(expanded, &part); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		for _, n := range part.Nodes {
			ledger.RestoreNode(n)
		}
		for _, w := range part.Workloads {
			ledger.Restore(w)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of epoch %d: %w", of.Epoch, err)
	}
	return ledger, nil
}
