package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Load reads what a leader starts from: queues, live workloads and nodes, of
// one moment.
func (s *Store) Load(ctx context.Context) (state.Stored, error) {
	var all state.Stored
	err := s.Read(ctx, func(stored state.Stored) { all = stored }, func(w state.StoredWorkload) {
		all.Workloads = append(all.Workloads, w)
	})
	return all, err
}

// LoadState is Load into a state, workload by workload: there may be a million.
func (s *Store) LoadState(ctx context.Context, epoch, maxEvent int64) (loaded *state.State, err error) {
	loaded, _, err = s.loadState(ctx, epoch, maxEvent)
	return loaded, err
}

// loadState is LoadState; committed is the epoch of the last commit.
func (s *Store) loadState(ctx context.Context, epoch, maxEvent int64) (loaded *state.State, committed int64, err error) {
	err = s.read(ctx, func(stored state.Stored, last int64) {
		stored.MaxEvent, committed = maxEvent, last
		loaded = state.New(epoch, stored)
	}, func(w state.StoredWorkload) { loaded.Restore(w) })
	return loaded, committed, err
}

// Read reads all of one moment: it calls begin with everything but the workloads,
// then each with one after the other, in the order of submission. When the database refuses to
// read a live workload, Read begins once more, from begin on, and leaves that one out.
func (s *Store) Read(ctx context.Context, begin func(state.Stored), each func(state.StoredWorkload)) error {
	return s.read(ctx, func(stored state.Stored, _ int64) { begin(stored) }, each)
}

// read is Read; begin gets the epoch of the last commit, too.
func (s *Store) read(ctx context.Context, begin func(stored state.Stored, committed int64), each func(state.StoredWorkload)) error {
	err := s.readIn(ctx, func(ctx context.Context, tx pgx.Tx) error {
		stored, committed, err := loadRest(ctx, tx, lastOrder)
		if err != nil {
			return err
		}
		begin(stored, committed)
		if err := newReader().eachLive(ctx, tx, nil, func(w state.StoredWorkload) error { each(w); return nil }); err != nil {
			return fmt.Errorf("load live workloads: %w", err)
		}
		return nil
	})
	if !Suspect(err) {
		return err
	}
	return s.readIn(ctx, func(ctx context.Context, tx pgx.Tx) error {
		stored, committed, err := loadRest(ctx, tx, lastArchived)
		if err != nil {
			return err
		}
		found, err := loadApart(ctx, tx)
		if err != nil {
			return fmt.Errorf("load live workloads by their ids: %w", err)
		}
		stored.LastOrder, stored.Unread = found.lastOrder(stored.LastOrder), found.unread
		begin(stored, committed)
		for _, w := range found.live {
			each(w)
		}
		return nil
	})
}

// readIn reads in a transaction that sees one moment.
func (s *Store) readIn(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	ctx = patient(ctx)
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		// It may take as long as it takes: a leader that cannot read cannot lead.
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return fmt.Errorf("prepare to load: %w", err)
		}
		return do(ctx, tx)
	})
}

// loadRest reads everything but the live workloads, with the epoch of the last commit; order is
// the query of the last submission.
func loadRest(ctx context.Context, tx pgx.Tx, order string) (stored state.Stored, committed int64, err error) {
	settings, err := loadSettings(ctx, tx)
	if err != nil {
		return stored, 0, err
	}
	stored.Queues, stored.Policy = settings.Queues, settings.Policy
	if stored.Nodes, err = loadNodes(ctx, tx); err != nil {
		return stored, 0, fmt.Errorf("load nodes: %w", err)
	}
	if stored.PastUsage, err = loadPastUsage(ctx, tx); err != nil {
		return stored, 0, err
	}
	if stored.Learned, err = loadLearned(ctx, tx); err != nil {
		return stored, 0, err
	}
	err = tx.QueryRow(ctx, order+`, (SELECT max(version) FROM commits), (SELECT epoch FROM commits ORDER BY version DESC LIMIT 1),
		(SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'workloads'::regclass)`).
		Scan(&stored.LastOrder, &stored.Version, &committed, &stored.Expected)
	if err != nil {
		return stored, 0, fmt.Errorf("load the last submission and version: %w", err)
	}
	return stored, committed, nil
}

// loadSettings reads what governs.
func loadSettings(ctx context.Context, tx pgx.Tx) (*state.Settings, error) {
	queues, err := loadQueues(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("load queues: %w", err)
	}
	policy, err := loadPolicy(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("load the policy: %w", err)
	}
	return &state.Settings{Queues: queues, Policy: policy}, nil
}

func loadQueues(ctx context.Context, tx pgx.Tx) ([]state.Queue, error) {
	rows, err := tx.Query(ctx, `SELECT name, namespaces, strategy, rules FROM queues ORDER BY name COLLATE "C"`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (q state.Queue, err error) {
		return q, row.Scan(&q.Name, &q.Namespaces, &q.Strategy, &q.Rules)
	})
}

func loadPolicy(ctx context.Context, tx pgx.Tx) (policy quota.Config, err error) {
	err = tx.QueryRow(ctx, `SELECT config FROM policy`).Scan(&policy)
	if errors.Is(err, pgx.ErrNoRows) {
		return policy, nil
	}
	return policy, err
}

// loadShapes reads pod sets: those of the given live workloads, or all for nil.
func (r *reader) loadShapes(ctx context.Context, tx querier, of uuids) error {
	rows, err := tx.Query(ctx, `SELECT id, pod_sets FROM shapes
		WHERE $1::uuid[] IS NULL OR id IN (SELECT shape FROM workloads WHERE id = ANY($1::uuid[]))`, of)
	if err != nil {
		return err
	}
	var id [16]byte
	var podSets []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &podSets}, func() error {
		if _, known := r.podSets[id]; known {
			return nil
		}
		var sets []workload.PodSet
		if err := json.Unmarshal(podSets, &sets); err != nil {
			return fmt.Errorf("read shape %x: %w", id, err)
		}
		r.podSets[id] = sets
		return nil
	})
	return err
}

// querier is a transaction or the pool.
type querier interface {
	Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error)
}

// loadLive reads the given live workloads with their places.
func (r *reader) loadLive(ctx context.Context, tx querier, of uuids) (live []state.StoredWorkload, err error) {
	err = r.eachLive(ctx, tx, of, func(w state.StoredWorkload) error { live = append(live, w); return nil })
	return live, err
}

// eachLive reads live workloads with their places: the given ones, or all for
// nil, in the order of submission, until one is refused.
func (r *reader) eachLive(ctx context.Context, tx querier, of uuids, each func(state.StoredWorkload) error) error {
	if err := r.loadShapes(ctx, tx, of); err != nil {
		return err
	}
	places, err := loadPlaces(ctx, tx, of)
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT `+recordColumns+` FROM workloads w
		WHERE $1::uuid[] IS NULL OR w.id = ANY($1::uuid[]) ORDER BY w.submission`, of)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		w, err := r.read(rows)
		if err != nil {
			return err
		}
		w.Placements = places[w.ID]
		if err := each(w); err != nil {
			return err
		}
	}
	return rows.Err()
}

// loadPlaces reads reservations by workload, in an order that no setting of the
// database changes.
func loadPlaces(ctx context.Context, tx querier, of uuids) (map[workload.ID][]workload.Placement, error) {
	rows, err := tx.Query(ctx, `SELECT workload, pod_set, node, pods, hostname FROM reservations
		WHERE $1::uuid[] IS NULL OR workload = ANY($1::uuid[]) ORDER BY workload, pod_set COLLATE "C", node COLLATE "C"`, of)
	if err != nil {
		return nil, err
	}
	places := map[workload.ID][]workload.Placement{}
	var id workload.ID
	var p workload.Placement
	_, err = pgx.ForEachRow(rows, []any{&id, &p.PodSet, &p.Node, &p.Pods, &p.Hostname}, func() error {
		places[id] = append(places[id], p)
		return nil
	})
	return places, err
}

func loadNodes(ctx context.Context, tx pgx.Tx) ([]state.StoredNode, error) {
	rows, err := tx.Query(ctx, `SELECT observed, session, seq, present FROM nodes ORDER BY cluster COLLATE "C", name COLLATE "C"`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanNode)
}

func scanNode(row pgx.CollectableRow) (n state.StoredNode, err error) {
	return n, row.Scan(&n.Node, &n.Version.Session, &n.Version.Seq, &n.Present)
}

// Known returns what is stored of the given workloads, live or finished.
func (s *Store) Known(ctx context.Context, ids []workload.ID) (map[workload.ID]state.Known, error) {
	known := map[workload.ID]state.Known{}
	if len(ids) == 0 {
		return known, nil
	}
	rows, err := s.pool.Query(ctx, `SELECT id, digest, phase, coalesce(record->>'submitter', ''), record FROM archive WHERE id = ANY($1::uuid[])
		UNION ALL SELECT id, digest, phase, submitter, NULL FROM workloads WHERE id = ANY($1::uuid[])`, uuidsOf(ids))
	if err != nil {
		return nil, fmt.Errorf("look up %d workloads: %w", len(ids), err)
	}
	var id workload.ID
	var found state.Known
	var record []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &found.Digest, &found.Phase, &found.Submitter, &record}, func() error {
		found.Record = nil
		if record != nil {
			if err := json.Unmarshal(record, &found.Record); err != nil {
				return fmt.Errorf("read the record of workload %s: %w", id, err)
			}
		}
		known[id] = found
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look up %d workloads: %w", len(ids), err)
	}
	return known, nil
}
