package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/state"
)

// ErrFenced is wrapped by the errors of writes when another queue-manager has become leader.
var ErrFenced = errors.New("another queue-manager is leader")

// Store is the database. Its methods may be called concurrently.
type Store struct {
	pool     *pgxpool.Pool
	lineages *lineages

	mu      sync.Mutex
	shapes  shapeMemory
	reached int64 // the last commit that is known of this term
}

// shapeMemory holds the ids of pod sets that the database is known to have. It
// mirrors the ledger, so it begins with the term: while another queue-manager
// leads, that one may remove what no workload needs any more.
type shapeMemory struct {
	epoch int64
	ids   map[string]bool
}

// shapesRemembered bounds the memory for shapes; a forgotten one is written once
// more, which changes nothing.
const shapesRemembered = 10_000

func (s *Store) hasShape(epoch int64, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shapes.epoch == epoch && s.shapes.ids[id]
}

func (s *Store) noteShapes(epoch int64, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shapes.epoch != epoch || len(s.shapes.ids)+len(ids) > shapesRemembered {
		s.shapes = shapeMemory{epoch, map[string]bool{}}
	}
	for _, id := range ids {
		s.shapes.ids[id] = true
	}
}

func (s *Store) forgetShapes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shapes = shapeMemory{}
}

// ErrNoSchema is wrapped by Open for a database that was not migrated.
var ErrNoSchema = errors.New("the database has no schema: run `queue-manager migrate` on it first")

// Open connects to the primary, of as many servers as the URL names, and checks that
// the schema is there.
func Open(ctx context.Context, url string, timeouts Timeouts) (*Store, error) {
	return open(ctx, url, timeouts, true)
}

// OpenReader is Open for reading only: a standby does, too.
func OpenReader(ctx context.Context, url string, timeouts Timeouts) (*Store, error) {
	return open(ctx, url, timeouts, false)
}

// OpenReadOnly is OpenReader with sessions in which Postgres refuses each write, whatever the
// login may.
func OpenReadOnly(ctx context.Context, url string, timeouts Timeouts) (*Store, error) {
	return open(ctx, url, timeouts, false, func(config *pgxpool.Config) {
		config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	})
}

func open(ctx context.Context, url string, timeouts Timeouts, primary bool, also ...func(*pgxpool.Config)) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("parse database URL: %w", err) // pgx leaves the password out
	}
	timeouts.configure(config)
	for _, change := range also {
		change(config)
	}
	s := &Store{lineages: &lineages{latest: map[string]int64{}}}
	if primary {
		s.lineages.require(&config.ConnConfig.Config)
		config.PrepareConn = s.lineages.prepare
		config.ConnConfig.Tracer = bound{2 * timeouts.Statement} // with time for the way and a lock
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	s.pool = pool
	if err := s.checkSchema(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) checkSchema(ctx context.Context) error {
	var present bool
	err := s.pool.QueryRow(ctx, `SELECT to_regclass('leader') IS NOT NULL`).Scan(&present)
	if err != nil {
		return fmt.Errorf("look for the schema: %w", err)
	}
	if !present {
		return ErrNoSchema
	}
	return nil
}

// Close closes all connections.
func (s *Store) Close() { s.pool.Close() }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// SetQueues brings the queues to what is configured. A queue that workloads
// still name stays although it is not configured any more.
//
// The quota ledger gets a row for all that the policy bounds. What is not in the
// policy any more has the bound zero, and goes when nothing is used of it. Gangs of a
// queue that is in another cohort now are charged to that one.
func (s *Store) SetQueues(ctx context.Context, epoch int64, queues []state.Queue, policy quota.Config) error {
	tree, err := quota.New(state.PolicyOf(queues, policy))
	if err != nil {
		return fmt.Errorf("the policy is not valid: %w", err)
	}
	if err = s.transact(ctx, epoch, func(batch *pgx.Batch) { queueSettings(batch, queues, policy, tree) }); err != nil {
		return fmt.Errorf("store %d queues: %w", len(queues), err)
	}
	return nil
}

func queueSettings(batch *pgx.Batch, queues []state.Queue, policy quota.Config, tree *quota.Tree) {
	names := make([]string, len(queues))
	for i, queue := range queues {
		names[i] = queue.Name
		batch.Queue(`
			INSERT INTO queues (name, namespaces, strategy, rules) VALUES ($1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET namespaces = excluded.namespaces, strategy = excluded.strategy, rules = excluded.rules`,
			queue.Name, queue.Namespaces, queue.Strategy, encoded(queue.Rules))
	}
	batch.Queue(`
		DELETE FROM queues q WHERE NOT name = ANY($1) AND NOT EXISTS (SELECT FROM workloads w WHERE w.queue = q.name)`, names)
	batch.Queue(`INSERT INTO policy (config) VALUES ($1) ON CONFLICT (only_row) DO UPDATE SET config = excluded.config`, encoded(policy))
	queueBounds(batch, tree.Bounds())
	queueMovedCharges(batch, tree)
	queueForgottenUsage(batch, tree)
	queueForgottenLearned(batch, tree)
	batch.Queue(`DELETE FROM quota_usage WHERE bound = 0 AND used = 0`)
}

// queueMovedCharges charges what gangs hold to the ClusterQueue and the cohorts that
// their queue is in now. Scopes without a bound for a flavor that a gang holds get a
// row with the bound zero.
func queueMovedCharges(batch *pgx.Batch, tree *quota.Tree) {
	var namespaces, names, scopes []string
	for _, local := range tree.Config().LocalQueues {
		if queue := tree.Queue(local.ClusterQueue); queue != nil {
			namespaces, names, scopes = append(namespaces, local.Namespace), append(names, local.Name), append(scopes, encoded(queue.Scopes()))
		}
	}
	const moved = `FROM reservations r JOIN workloads w ON w.id = r.workload
		JOIN unnest($1::text[], $2::text[], $3::jsonb[]) AS q (namespace, name, scopes) ON q.namespace = w.namespace AND q.name = w.queue
		WHERE r.charges IS NOT NULL AND r.charges->'scopes' <> q.scopes`
	batch.Queue(`INSERT INTO quota_usage (scope, flavor, resource, bound)
		SELECT DISTINCT s.scope, f.value, f.key, 0 FROM (SELECT r.charges, q.scopes `+moved+`) m,
			jsonb_array_elements_text(m.scopes) s (scope), jsonb_each_text(m.charges->'flavors') f
		ON CONFLICT DO NOTHING`, namespaces, names, scopes)
	batch.Queue(`UPDATE reservations u SET charges = jsonb_set(u.charges, '{scopes}', m.scopes)
		FROM (SELECT r.workload, r.pod_set, r.node, q.scopes `+moved+`) m
		WHERE u.workload = m.workload AND u.pod_set = m.pod_set AND u.node = m.node`, namespaces, names, scopes)
}

func queueBounds(batch *pgx.Batch, bounds []quota.Bound) {
	scopes, flavors, resources := make([]string, len(bounds)), make([]string, len(bounds)), make([]string, len(bounds))
	amounts := make([]int64, len(bounds))
	for i, b := range bounds {
		scopes[i], flavors[i], resources[i], amounts[i] = b.Scope, b.Flavor, string(b.Resource), b.Amount
	}
	batch.Queue(`UPDATE quota_usage SET bound = 0`)
	batch.Queue(`INSERT INTO quota_usage (scope, flavor, resource, bound) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
		ON CONFLICT (scope, flavor, resource) DO UPDATE SET bound = excluded.bound`, scopes, flavors, resources, amounts)
}
