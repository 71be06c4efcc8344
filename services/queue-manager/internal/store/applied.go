package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/state"
)

// Applied lists the objects that were applied at run time.
func (s *Store) Applied(ctx context.Context) (query.AppliedAnswer, error) {
	rows, err := s.pool.Query(ctx, `SELECT kind, namespace, name, origin, manifest, version FROM applied ORDER BY kind, namespace, name`)
	if err != nil {
		return query.AppliedAnswer{}, fmt.Errorf("list applied objects: %w", err)
	}
	objects, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a query.Applied, err error) {
		return a, row.Scan(&a.Kind, &a.Namespace, &a.Name, &a.Origin, &a.Manifest, &a.Version)
	})
	if err != nil {
		return query.AppliedAnswer{}, fmt.Errorf("list applied objects: %w", err)
	}
	return query.AppliedAnswer{Objects: objects}, nil
}

// Configuration is a change of the applied objects, and what governs after it.
type Configuration struct {
	state.Settings
	// Version that the ledger gets: one more than the one it was checked on.
	Version int64
	Origin  string
	Written []Written
	Removed []kueue.Key
}

// Written is an object that is new or has changed.
type Written struct {
	kueue.Key
	Manifest json.RawMessage
}

// Configure writes a change of the applied objects and what comes of it, in one
// transaction, and returns what governs now. Errors wrap ErrFenced or ErrStale.
func (s *Store) Configure(ctx context.Context, epoch int64, c Configuration) (state.Settings, error) {
	tree, err := quota.New(state.PolicyOf(c.Queues, c.Policy))
	if err != nil {
		return state.Settings{}, fmt.Errorf("the policy is not valid: %w", err)
	}
	err = s.transact(ctx, epoch, func(batch *pgx.Batch) {
		batch.Queue(`INSERT INTO commits (version, epoch, workloads, clusters, nodes, settings) VALUES (`+nextVersion+`, $2, '{}', '{}', '{}', true)`, c.Version, epoch)
		manifests := make([]json.RawMessage, len(c.Written))
		for i, w := range c.Written {
			manifests[i] = w.Manifest
			batch.Queue(`INSERT INTO applied (kind, namespace, name, origin, manifest, version) VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (kind, namespace, name) DO UPDATE SET origin = excluded.origin, manifest = excluded.manifest, version = excluded.version`,
				w.Kind, w.Namespace, w.Name, c.Origin, string(w.Manifest), c.Version)
		}
		for _, key := range c.Removed {
			batch.Queue(`DELETE FROM applied WHERE kind = $1 AND namespace = $2 AND name = $3`, key.Kind, key.Namespace, key.Name)
		}
		removed := c.Removed
		if removed == nil {
			removed = []kueue.Key{}
		}
		batch.Queue(`INSERT INTO applied_changes (version, epoch, origin, written, removed) VALUES ($1, $2, $3, $4, $5)`,
			c.Version, epoch, c.Origin, encoded(manifests), encoded(removed))
		queueSettings(batch, c.Queues, c.Policy, tree)
	})
	if err != nil {
		return state.Settings{}, fmt.Errorf("store a configuration of %d queues: %w", len(c.Queues), Explained(err))
	}
	// A queue that workloads still name stays; that only the database knows.
	return s.Settings(ctx)
}
