package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// ErrCommitMissing marks errors because the database lacks a commit that the process needs.
// Follower.Next returns it when commits that it has not read have been removed, or when the
// one that it has read last is gone: everything has to be read again. What a relay writes is
// refused with it when the last commit of the term is gone (reached.go).
var ErrCommitMissing = errors.New("the database lacks a commit: it is not kept any more, or the database was restored to an older state")

// followLimit bounds the commits that are followed at once.
const followLimit = 500

// Follower reads what a leader commits, for a standby.
type Follower struct {
	store  *Store
	reader *reader
	// epoch of the commit that was followed last. A version alone does not name a
	// commit: a database restored to an older state gives it to another one.
	epoch int64
}

// Follower returns a follower. It is not safe for concurrent use.
func (s *Store) Follower() *Follower { return &Follower{store: s, reader: newReader()} }

// Load reads everything into a state, from which Next goes on.
func (f *Follower) Load(ctx context.Context, maxEvent int64) (loaded *state.State, err error) {
	loaded, f.epoch, err = f.store.loadState(ctx, 0, maxEvent)
	return loaded, err
}

// Next returns what the commits after the given version have touched, as it is
// now, and whether there may be more. Nothing new is a delta of the same version.
func (f *Follower) Next(ctx context.Context, version int64) (delta state.Delta, more bool, err error) {
	delta.Version = version
	epoch := f.epoch
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, f.store.pool, options, func(tx pgx.Tx) error {
		ids, keys, n, settings, err := touched(ctx, tx, &delta.Version, &epoch)
		if err != nil || n == 0 {
			return err
		}
		if settings {
			if delta.Settings, err = loadSettings(ctx, tx); err != nil {
				return err
			}
		}
		more = n == followLimit
		if delta.Workloads, err = f.reader.loadLive(ctx, tx, uuidsOf(ids)); err != nil {
			return err
		}
		live := map[workload.ID]bool{}
		for _, w := range delta.Workloads {
			live[w.ID] = true
			delta.LastOrder = max(delta.LastOrder, w.Order)
		}
		for _, id := range ids {
			if !live[workload.ID(id)] {
				delta.Gone = append(delta.Gone, workload.ID(id))
			}
		}
		return followNodes(ctx, tx, keys, &delta)
	})
	if err != nil {
		return delta, false, fmt.Errorf("follow the leader from version %d: %w", version, err)
	}
	f.epoch = epoch
	return delta, more, nil
}

// touched lists what the next commits have touched and moves the version, and the
// epoch of its commit, on. settings means that what governs is among it.
func touched(ctx context.Context, tx pgx.Tx, version, epoch *int64) (ids []string, keys map[admission.NodeKey]bool, n int, settings bool, err error) {
	rows, err := tx.Query(ctx, `SELECT version, epoch, workloads::text[], clusters, nodes, settings FROM commits
		WHERE version >= $1 ORDER BY version LIMIT $2`, *version, followLimit+1)
	if err != nil {
		return nil, nil, 0, false, err
	}
	seen := map[string]bool{}
	keys = map[admission.NodeKey]bool{}
	var at, of int64
	from, present := *version, false
	var changed bool
	var workloads, clusters, nodes []string
	_, err = pgx.ForEachRow(rows, []any{&at, &of, &workloads, &clusters, &nodes, &changed}, func() error {
		if at == from && (*epoch == 0 || of == *epoch) {
			present, *epoch = true, of
			return nil
		}
		if !present || at != *version+1 {
			return fmt.Errorf("version %d comes after %d: %w", at, *version, ErrCommitMissing)
		}
		*version, *epoch = at, of
		n++
		settings = settings || changed
		for _, id := range workloads {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
		for i := range nodes {
			keys[admission.NodeKey{Cluster: clusters[i], Name: nodes[i]}] = true
		}
		return nil
	})
	if err == nil && !present {
		err = fmt.Errorf("there is no version %d: %w", from, ErrCommitMissing)
	}
	if ids == nil {
		ids = []string{} // nil would mean all
	}
	return ids, keys, n, settings, err
}

func followNodes(ctx context.Context, tx querier, keys map[admission.NodeKey]bool, delta *state.Delta) error {
	if len(keys) == 0 {
		return nil
	}
	var clusters, names []string
	for key := range keys {
		clusters, names = append(clusters, key.Cluster), append(names, key.Name)
	}
	rows, err := tx.Query(ctx, `SELECT observed, session, seq, present FROM nodes
		WHERE (cluster, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, clusters, names)
	if err != nil {
		return err
	}
	if delta.Nodes, err = pgx.CollectRows(rows, scanNode); err != nil {
		return err
	}
	for _, n := range delta.Nodes {
		delete(keys, admission.NodeKey{Cluster: n.Cluster, Name: n.Name})
	}
	for key := range keys {
		delta.GoneNodes = append(delta.GoneNodes, key)
	}
	return nil
}

// LastOrder is the place of the last submission, live or finished.
func (s *Store) LastOrder(ctx context.Context) (order int64, err error) {
	if err := s.pool.QueryRow(ctx, lastOrder).Scan(&order); err != nil {
		return 0, fmt.Errorf("look up the last submission: %w", err)
	}
	return order, nil
}

// lastArchived is the place of the last submission that has ended.
const lastArchived = `SELECT coalesce((SELECT max(submission) FROM archive), 0)`

const lastOrder = `SELECT greatest((SELECT max(submission) FROM workloads), (SELECT max(submission) FROM archive), 0)`

// Settings reads what governs, as stored.
func (s *Store) Settings(ctx context.Context) (state.Settings, error) {
	var stored *state.Settings
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		stored, err = loadSettings(ctx, tx)
		return err
	})
	if err != nil {
		return state.Settings{}, err
	}
	return *stored, nil
}
