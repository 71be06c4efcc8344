package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/state"
)

// ErrBadData is wrapped by the error of a Transaction when Postgres cannot store a value at
// all, so that trying again is useless.
var ErrBadData = errors.New("a value cannot be stored")

// ErrStale is wrapped by the error of a Transaction when the changes were decided on a
// version of the ledger that is not the last one.
var ErrStale = errors.New("the ledger has changed since this was decided")

// commitsKey is the constraint that refuses a version that is there already.
const commitsKey = "commits_pkey"

// Transaction sends a prepared transaction and returns the messages that may now leave,
// in order. It serves once, and sends what Postgres cancels once more. Errors wrap ErrFenced, ErrStale or ErrBadData; after any error
// nothing was written, but for a connection lost during the commit itself, when it is
// unknown: load the state again.
type Transaction func(ctx context.Context) ([]Outgoing, error)

// Prepare makes the transaction that writes the changes and what they were decided
// on; one of no changes asks whether the leader still is. It shares nothing with what it
// was made of.
func (s *Store) Prepare(changes state.Changes, record Record) (Transaction, error) {
	outgoing, err := Encode(changes.Messages)
	if err != nil {
		return nil, fmt.Errorf("prepare changes: %w", err)
	}
	batch := newBatch(changes.Epoch)
	var shapes []string
	queueRecord(batch, changes, record)
	if changes.Empty() {
		queueUnchanged(batch, changes.Version)
	} else {
		queueVersion(batch, changes)
		queuePastUsage(batch, changes.PastUsage)
		queueLearned(batch, changes.Learned)
		queueNodes(batch, changes.Nodes)
		shapes = s.queueWorkloads(batch, changes)
		queueDropped(batch, changes.Nodes)
		queueHistory(batch, changes)
		queueOutbox(batch, outgoing)
	}
	epoch, version := changes.Epoch, changes.Version
	return func(ctx context.Context) ([]Outgoing, error) {
		err := s.send(ctx, batch)
		if cancelled(err) && pause.For(ctx, sendAgain) == nil {
			err = s.send(ctx, again(batch))
		}
		if err != nil {
			return nil, fmt.Errorf("commit changes: %w", Explained(err))
		}
		s.noteShapes(epoch, shapes)
		s.reach(version)
		return outgoing, nil
	}, nil
}

// sendAgain is after how long a cancelled transaction is sent once more, so that the term does
// not end for a moment of strain.
const sendAgain = 200 * time.Millisecond

// again returns a batch that can be sent, of one that was.
func again(sent *pgx.Batch) *pgx.Batch {
	batch := &pgx.Batch{}
	for _, q := range sent.QueuedQueries {
		batch.QueuedQueries = append(batch.QueuedQueries, &pgx.QueuedQuery{SQL: q.SQL, Arguments: q.Arguments, Fn: q.Fn})
	}
	return batch
}

// Explained marks the errors that a caller tells apart.
func Explained(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || len(refused.Code) != 5 {
		return err
	}
	switch {
	case badData(err):
		return fmt.Errorf("%w: %w", ErrBadData, err)
	case isStale(refused):
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// isStale reports whether the version of a commit was refused.
func isStale(refused *pgconn.PgError) bool {
	return refused.ConstraintName == commitsKey ||
		refused.Code == notNull && refused.TableName == "commits" && refused.ColumnName == "version"
}

// queueVersion numbers the commit and notes for standbys what it touches.
func queueVersion(batch *pgx.Batch, c state.Changes) {
	workloads := make(uuids, 0, len(c.Added)+len(c.Updated))
	for _, a := range c.Added {
		workloads = append(workloads, uuidText(a.ID))
	}
	for _, r := range c.Updated {
		workloads = append(workloads, uuidText(r.ID))
	}
	clusters, nodes := make([]string, len(c.Nodes)), make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		clusters[i], nodes[i] = n.Cluster, n.Name
	}
	batch.Queue(`INSERT INTO commits (version, epoch, workloads, clusters, nodes) VALUES (`+nextVersion+`, $2, $3::uuid[], $4, $5)`,
		c.Version, c.Epoch, workloads, clusters, nodes)
}

// nextVersion is the version $1 if it follows the last one, and else NULL, which the
// table refuses. Commits may be lost while a leader goes on, when a standby of
// Postgres takes over that does not have them: none may be missing before this one.
const nextVersion = `CASE WHEN (SELECT max(version) FROM commits) = $1::bigint - 1 THEN $1::bigint END`

// notNull is Postgres' SQLSTATE for NULL where it is not allowed.
const notNull = "23502"

// queueUnchanged makes sure that the ledger is at the version: what changes nothing
// rests on it, too. Zero is not known.
func queueUnchanged(batch *pgx.Batch, version int64) {
	if version == 0 {
		return
	}
	batch.Queue(`SELECT max(version) FROM commits`).QueryRow(func(row pgx.Row) error {
		var last int64
		if err := row.Scan(&last); err != nil {
			return err
		}
		if last != version {
			return fmt.Errorf("%w: it is at version %d, and the decision was made on version %d", ErrStale, last, version)
		}
		return nil
	})
}
