package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
	"muster.dev/muster/services/queue-manager/ledgerbench/waiting"
)

// BenchmarkSelectByLabels selects a page of 100,000 workloads that have ended, with manifests
// of 4 KiB, by their labels.
func BenchmarkSelectByLabels(b *testing.B) {
	const workloads = 100_000
	url := testServer.Database(b)
	timeouts := store.DefaultTimeouts()
	timeouts.Statement = 10 * time.Minute // it is measured how long it takes
	s, err := store.Open(b.Context(), testServer.As(b, url, "muster_queue_manager"), timeouts)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	for _, sql := range []string{
		fmt.Sprintf(`BEGIN; SELECT assert_leader((SELECT epoch FROM leader));
		INSERT INTO archive (id, submission, queue, namespace, name, phase, digest, finished_at, record, manifest)
		SELECT md5(w::text)::uuid, w, 'q' || w %% 10, 'n' || w %% 50, 'w' || w, 'succeeded', '', now(), json_build_object('id', md5(w::text)::uuid, 'name', 'w' || w,
				'padding', repeat(md5(w::text), 30)),
			json_build_object('metadata', json_build_object('name', 'w' || w, 'labels', json_build_object('team', 't' || w %% 20, 'run', w::text)),
				'spec', (SELECT string_agg(md5(w::text || i), '') FROM generate_series(1, 128) i))
		FROM generate_series(1, %d) w; COMMIT`, workloads),
		`VACUUM ANALYZE archive`,
	} {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	for selector, want := range map[string]int{
		"run=99999": 1, "team=t7": query.MaxPage, "team=t7,run in (99987,99967)": 2, "team=absent": 0, "team!=t7": query.MaxPage, "!team": 0,
	} {
		labels, err := query.ParseSelector(selector)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(selector, func(b *testing.B) {
			for b.Loop() {
				answer, err := s.Workloads(b.Context(), query.WorkloadsRequest{Labels: labels})
				if err != nil || len(answer.Workloads) != want {
					b.Fatalf("%d workloads, %v; want %d", len(answer.Workloads), err, want)
				}
			}
		})
	}
}

// BenchmarkFirstPages asks what the first page of a queue and the overview of the console ask,
// where 100,000 workloads wait in one queue.
func BenchmarkFirstPages(b *testing.B) {
	l := open(b)
	l.term.End()
	if err := waiting.Seed(b.Context(), l.url, 0, 100_000); err != nil {
		b.Fatal(err)
	}
	queued := []workload.Phase{workload.Queued}
	for name, ask := range map[string]func() error{
		"what waits in a queue": func() error {
			_, err := l.Workloads(b.Context(), query.WorkloadsRequest{Queue: waiting.Queue, Namespace: waiting.Queue, Phases: queued, Limit: 100})
			return err
		},
		"what waits": func() error {
			_, err := l.Workloads(b.Context(), query.WorkloadsRequest{Phases: queued, Limit: 100})
			return err
		},
		"what lives in a queue": func() error {
			_, err := l.Workloads(b.Context(), query.WorkloadsRequest{Queue: waiting.Queue, Namespace: waiting.Queue, Phases: []workload.Phase{workload.Running}, Limit: 100})
			return err
		},
		"queues": func() error { _, err := l.Queues(b.Context()); return err },
		"status": func() error { return l.Status(b.Context(), &query.StatusAnswer{At: time.Now()}) },
		"activity of a queue": func() error {
			_, err := l.Activity(b.Context(), query.ActivityRequest{Since: time.Now().Add(-time.Hour), StepSeconds: 60, Queue: waiting.Queue}, time.Now())
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
