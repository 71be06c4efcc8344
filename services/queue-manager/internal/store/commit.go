package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/book"
)

// ErrBadData is wrapped by Commit when Postgres cannot store a value at all, so
// that trying again is useless.
var ErrBadData = errors.New("a value cannot be stored")

// ErrStale is wrapped by Commit when the changes were decided on a version of
// the ledger that is not the last one.
var ErrStale = errors.New("the ledger has changed since this was decided")

// Commit writes the changes in one transaction and returns the messages that
// may now leave, in order. Errors wrap ErrFenced, ErrStale or ErrBadData; after
// any error nothing was written, but for a connection lost during the commit
// itself, when it is unknown: read anew.
func (s *Store) Commit(ctx context.Context, changes book.Changes) ([]Outgoing, error) {
	outgoing, err := encode(changes.Messages)
	if err != nil {
		return nil, fmt.Errorf("commit changes: %w", err)
	}
	var shapes []string
	err = s.transact(ctx, changes.Epoch, func(batch *pgx.Batch) {
		if changes.Empty() {
			return // the leader asks whether it still is
		}
		queueVersion(batch, changes)
		queueNodes(batch, changes.Nodes)
		shapes = s.queueWorkloads(batch, changes)
		queueDropped(batch, changes.Nodes)
		queueHistory(batch, changes)
		queueOutbox(batch, outgoing)
	})
	if err != nil {
		return nil, fmt.Errorf("commit changes: %w", explained(err))
	}
	s.noteShapes(shapes)
	return outgoing, nil
}

// explained marks the errors that a caller tells apart.
func explained(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || len(refused.Code) != 5 {
		return err
	}
	switch {
	case refused.Code[:2] == "22":
		return fmt.Errorf("%w: %w", ErrBadData, err)
	case refused.ConstraintName == "commits_pkey":
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// queueVersion numbers the commit and tells standbys what it touches.
func queueVersion(batch *pgx.Batch, c book.Changes) {
	workloads := make([]string, 0, len(c.Added)+len(c.Updated))
	for _, a := range c.Added {
		workloads = append(workloads, string(a.ID))
	}
	for _, r := range c.Updated {
		workloads = append(workloads, string(r.ID))
	}
	clusters, nodes := make([]string, len(c.Nodes)), make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		clusters[i], nodes[i] = n.Cluster, n.Name
	}
	batch.Queue(`INSERT INTO commits (version, epoch, workloads, clusters, nodes) VALUES ($1, $2, $3::uuid[], $4, $5)`,
		c.Version, c.Epoch, workloads, clusters, nodes)
}
