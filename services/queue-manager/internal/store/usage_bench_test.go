package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/queue-manager/internal/store"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

// BenchmarkUsage reports the usage of 100,000 workloads that have ended, each with five steps,
// over 30 days: of all of the time, and of its last hour.
func BenchmarkUsage(b *testing.B) {
	url := testServer.Database(b)
	timeouts := store.DefaultTimeouts()
	timeouts.Statement = 10 * time.Minute // it is measured how long it takes
	s, err := store.Open(b.Context(), testServer.As(b, url, "muster_queue_manager"), timeouts)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	term, err := s.Lead(b.Context(), "test", silence, func() {})
	if err != nil {
		b.Fatal(err)
	}
	defer term.End()
	fillUsage(b, url, term.Epoch, 100_000)
	now := time.Now()
	for name, since := range map[string]time.Time{"month": now.AddDate(0, 0, -31), "hour": now.Add(-time.Hour)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				err := s.Usage(b.Context(), func(h *store.UsageHistory) error {
					report, err := usage.Report(b.Context(), h, query.UsageRequest{Since: since, By: []string{query.ByQueue, query.ByUser}}, nil, now)
					if err == nil && len(report.Rows) == 0 {
						b.Error("an empty report")
					}
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fillUsage writes the history of workloads that have ended, spread over the last 30 days, in
// partitions of days.
func fillUsage(b *testing.B, url string, epoch int64, workloads int) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	for _, sql := range []string{
		`DO $$ BEGIN FOR i IN 0..32 LOOP EXECUTE format('CREATE TABLE IF NOT EXISTS %I PARTITION OF history FOR VALUES FROM (%L) TO (%L)',
			'history_' || to_char((now() AT TIME ZONE 'UTC')::date - i, 'YYYYMMDD'),
			((now() AT TIME ZONE 'UTC')::date - i)::timestamp AT TIME ZONE 'UTC', ((now() AT TIME ZONE 'UTC')::date - i + 1)::timestamp AT TIME ZONE 'UTC'); END LOOP; END $$`,
		fmt.Sprintf(`BEGIN; SELECT assert_leader(%d);
		INSERT INTO history (workload, at, epoch, version, phase, attempt, cluster, usage)
		SELECT md5(w::text)::uuid, now() - interval '30 days' + (interval '30 days' * w / %d) - interval '30 minutes' + s.after, %d, w, s.phase, 1, 'c', jsonb_build_object(
			'queue', 'q' || w %% 10, 'namespace', 'n' || w %% 50, 'submitter', 'http/user' || w %% 50) || s.usage ||
			CASE WHEN s.phase = 'admitted' THEN jsonb_build_object('since', now() - interval '31 days') ELSE '{}' END
		FROM generate_series(1, %d) w, (VALUES
			(interval '0', 'admitted', '{"held": [{"flavor": "a100", "resources": {"nvidia.com/gpu": 8}}, {"resources": {"cpu": 64000, "memory": 549755813888, "pods": 9}}]}'::jsonb),
			(interval '1 second', 'dispatched', '{"held": [{"flavor": "a100", "resources": {"nvidia.com/gpu": 8}}, {"resources": {"cpu": 64000, "memory": 549755813888, "pods": 9}}]}'),
			(interval '10 seconds', 'running', '{"held": [{"flavor": "a100", "resources": {"nvidia.com/gpu": 8}}, {"resources": {"cpu": 64000, "memory": 549755813888, "pods": 9}}]}'),
			(interval '20 minutes', 'succeeded', '{"held": [{"flavor": "a100", "resources": {"nvidia.com/gpu": 8}}, {"resources": {"cpu": 64000, "memory": 549755813888, "pods": 9}}]}'),
			(interval '20 minutes 5 seconds', 'succeeded', '{}')) s (after, phase, usage)
		ORDER BY 2; COMMIT`, epoch, workloads, epoch, workloads),
		`ANALYZE history`,
	} {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
}
