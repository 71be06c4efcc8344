// Package waiting fills a ledger with workloads that wait, for measurements: as the service would
// have stored them, without the time that this takes. It is not for a ledger that is in use.
package waiting

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Queue and namespace of the workloads.
const Queue = "waiting"

// shapes is how many different shapes the workloads have.
const shapes = 200

// Seed makes workloads wait that ask for what no node has, in a queue of their own, as the
// service would have stored them. It adds what lacks to those that wait already.
func Seed(ctx context.Context, url string, already, waiting int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range []string{
		`UPDATE leader SET epoch = epoch + 1`,
		`SELECT set_config('muster.epoch', (SELECT epoch::text FROM leader), false)`,
		`INSERT INTO queues (name, namespaces, strategy) VALUES ('waiting', '{waiting}', 'BestEffortFIFO'), ('fits', '{fits}', 'BestEffortFIFO')
			ON CONFLICT DO NOTHING`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if waiting <= already {
		return nil
	}
	for _, statement := range []string{
		`INSERT INTO shapes SELECT md5('shape' || s)::uuid, jsonb_build_array(jsonb_build_object('name', 'headgroup', 'role', 'head', 'count', 1,
				'template', jsonb_build_object('requests', jsonb_build_object('cpu', 1000, 'memory', 1073741824, 'pods', 1))),
			jsonb_build_object('name', 'workers', 'role', 'worker', 'count', 1 + s % 16,
				'template', jsonb_build_object('requests', jsonb_build_object('cpu', 1000 + s, 'memory', 1073741824, 'pods', 1, 'example.com/rare', 8)))),
			2 + s % 16
			FROM generate_series(0, $3::int - 1) s WHERE $1::int < $2::int ON CONFLICT DO NOTHING`,
		`INSERT INTO manifests SELECT md5('waiting' || i)::uuid, '{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"waiting"}}'
			FROM generate_series($1::int + 1, $2::int) i WHERE $3::int > 0`,
		`INSERT INTO workloads (id, submission, queue, namespace, kind, name, priority, digest, phase, attempt, holding, cancel_requested,
				reason, submitted_at, shape, gang)
			SELECT md5('waiting' || i)::uuid, (SELECT greatest(max(submission), 0) FROM workloads) + i - $1::int, 'waiting', 'waiting', 'RayCluster', 'waiting-' || i,
				i % 3, encode(sha256(i::text::bytea), 'hex'), 'queued', 1, false, false,
				'{"kind":"Fit","message":"1 of 1 pods of pod set \"workers\" do not fit: 0/1 nodes are available: 1 Insufficient example.com/rare"}',
				now(), md5('shape' || i % $3::int)::uuid, 2 + (i % $3::int) % 16
			FROM generate_series($1::int + 1, $2::int) i`,
	} {
		if _, err := conn.Exec(ctx, statement, already, waiting, shapes); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, `VACUUM ANALYZE`)
	return err
}
