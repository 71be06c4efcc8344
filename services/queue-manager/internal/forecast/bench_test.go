package forecast

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// The site of the benchmark: 2,000 gangs hold all accelerators of 10,000 nodes, and 100,000 wait.
const (
	benchNodes   = 10_000
	benchEach    = 5 // nodes of a gang that runs
	benchWaiting = 100_000
	benchGPUs    = 8 // of a node, and of a pod
)

// BenchmarkRefresh makes all estimates again on a large site: it reads the live state from
// Postgres, plays it forward, and keeps the estimates. What waits is in one queue, of which the
// first 1,000 are estimated, or in 20, of which 10,000 are.
func BenchmarkRefresh(b *testing.B) {
	server, err := pgtest.Start(func(ctx context.Context, url string) error {
		_, err := store.Migrate(ctx, url)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	for _, queues := range []int{1, 20} {
		f := siteOf(b, server, queues)
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			for b.Loop() {
				f.seen = -1 // the ledger has changed
				if err := f.refresh(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			timed := 0
			for _, e := range f.made {
				if !e.P50.IsZero() {
					timed++
				}
			}
			if want := min(queues*mostOfQueue, mostWaiting); len(f.made) != want || timed == 0 {
				b.Fatalf("%d estimates, %d with a time; want %d", len(f.made), timed, want)
			}
			b.ReportMetric(float64(timed), "starts/op")
		})
		b.Run(fmt.Sprintf("queues=%d/what-if", queues), func(b *testing.B) {
			drain := query.WhatIfRequest{Drain: []query.NodeName{{Cluster: "big", Name: "gpu-00000"}}}
			for b.Loop() {
				if _, err := f.WhatIf(b.Context(), drain); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// siteOf makes a ledger with the site, and a forecaster of its leader.
func siteOf(b *testing.B, server *pgtest.Server, queues int) *Forecaster {
	b.Helper()
	url := server.Database(b)
	timeouts := store.DefaultTimeouts()
	timeouts.Statement = 10 * time.Minute // it is measured how long it takes
	s, err := store.Open(b.Context(), server.As(b, url, "muster_queue_manager"), timeouts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	term, err := s.Lead(b.Context(), "bench", time.Minute, func() {})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(term.End)
	var all []state.Queue
	for i := range queues {
		all = append(all, state.Queue{Name: fmt.Sprint("q", i), Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO})
	}
	if err := s.SetQueues(b.Context(), term.Epoch, all, quota.Config{}); err != nil {
		b.Fatal(err)
	}
	commit(b, s, term.Epoch, nodesOfSite())
	commit(b, s, term.Epoch, running(queues))
	fill(b, url, queues)
	return &Forecaster{Store: s, Logger: zap.NewNop(), Metrics: NewMetrics(prometheus.NewRegistry()), Now: time.Now, Holder: "bench"}
}

func commit(b *testing.B, s *store.Store, epoch int64, changes state.Changes) {
	b.Helper()
	stored, err := s.Load(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	changes.Epoch, changes.Version = epoch, stored.Version+1
	write, err := s.Prepare(changes, store.Record{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := write(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func nodesOfSite() (changes state.Changes) {
	for i := range benchNodes {
		changes.Nodes = append(changes.Nodes, state.NodeRow{Node: capacity.Node{
			Cluster: "big", Name: fmt.Sprintf("gpu-%05d", i), Ready: true, Created: time.Unix(1e9, 0).UTC(),
			Labels:      map[string]string{"rack": fmt.Sprint(i / 16), "kubernetes.io/hostname": fmt.Sprintf("gpu-%05d", i), "pool": "a100"},
			Allocatable: resource.List{"cpu": 128_000, "memory": 1 << 40, "pods": 110, "nvidia.com/gpu": benchGPUs},
		}, Version: event.Version{Session: 1, Seq: uint64(i + 1)}, Present: true})
	}
	return changes
}

// running are gangs of as many pods as they have nodes, which end one after the other.
func running(queues int) (changes state.Changes) {
	requests := resource.List{"cpu": 8000, "memory": 1 << 30, "pods": 1, "nvidia.com/gpu": benchGPUs}
	now := time.Now()
	for i := range benchNodes / benchEach {
		w := workload.Workload{
			ID: event.WorkloadID("bench", fmt.Sprint(i)), Queue: fmt.Sprint("q", i%queues), Namespace: "ns", Kind: workload.KindRayCluster, Name: fmt.Sprint("runs-", i),
			PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: benchEach, Template: workload.Template{Requests: requests}}},
		}
		w.Life.RunTime = workload.Duration(time.Hour + time.Duration(i)*time.Minute)
		changes.Added = append(changes.Added, state.Added{Order: int64(i + 1), Manifest: []byte(`{}`), Record: workload.Record{
			Workload: w, Phase: workload.Running, Attempt: 1, Cluster: "big", Holding: true,
			Times: workload.Times{Submitted: now.Add(-time.Hour), Admitted: now, Dispatched: now, Running: now},
		}})
		for k := range benchEach {
			changes.Reserved = append(changes.Reserved, state.Reservation{
				Workload: w.ID, Attempt: 1, Cluster: "big", Requests: requests,
				Placement: workload.Placement{PodSet: "workers", Node: fmt.Sprintf("gpu-%05d", i*benchEach+k), Pods: 1},
			})
		}
	}
	return changes
}

// fill has gangs of 1 to 16 pods wait, behind all that was submitted.
func fill(b *testing.B, url string, queues int) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	for _, sql := range []string{
		`SELECT set_config('muster.epoch', (SELECT epoch::text FROM leader), false)`,
		fmt.Sprintf(`INSERT INTO shapes SELECT md5('shape' || s)::uuid, jsonb_build_array(jsonb_build_object('name', 'workers', 'role', 'worker', 'count', 1 + s,
				'template', jsonb_build_object('requests', jsonb_build_object('cpu', 8000, 'memory', 1073741824, 'pods', 1, 'nvidia.com/gpu', %d)))), 1 + s
			FROM generate_series(0, 15) s`, benchGPUs),
		fmt.Sprintf(`INSERT INTO workloads (id, submission, queue, namespace, kind, name, priority, digest, phase, attempt, holding, cancel_requested, submitted_at, life, shape, gang)
			SELECT md5('waiting' || i)::uuid, %d + i, 'q' || i %% %d, 'ns', 'RayCluster', 'waiting-' || i, 0, encode(sha256(i::text::bytea), 'hex'), 'queued', 1, false, false,
				now(), jsonb_build_object('runTime', (30 + i %% 600) || 'm'), md5('shape' || i %% 16)::uuid, 1 + i %% 16
			FROM generate_series(1, %d) i`, benchNodes/benchEach, queues, benchWaiting),
		`VACUUM ANALYZE`,
	} {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
}
