package forecast

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// TestAForecastIsBoundedInTime: where more waits than can be simulated in its time, the first ones
// have a time, and the others are too far back.
func TestAForecastIsBoundedInTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := &Forecaster{
		Store: &fullSite{live: siteOf(now, 100, 500)}, Logger: zap.NewNop(), Metrics: NewMetrics(prometheus.NewRegistry()),
		Now: func() time.Time { now = now.Add(mostTime / 50); return now },
	}
	if err := f.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	known, beyond := 0, 0
	for _, made := range f.made {
		switch made.Unknown {
		case "":
			known++
		case tooFarBack:
			beyond++
		}
	}
	if known == 0 || beyond == 0 || known+beyond != 500 {
		t.Errorf("%d have a time and %d are too far back, want some of each, and 500 in all", known, beyond)
	}
}

// BenchmarkRefresh makes the estimates of 10,000 full nodes, with gangs that wait in ten queues of
// one cohort. Postgres is not in it.
func BenchmarkRefresh(b *testing.B) {
	for _, waiting := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			f := &Forecaster{
				Store: &fullSite{live: siteOf(time.Now(), 10_000, waiting)}, Logger: zap.NewNop(), Metrics: NewMetrics(prometheus.NewRegistry()), Now: time.Now,
			}
			for b.Loop() {
				if err := f.refresh(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			known := 0
			for _, made := range f.made {
				if made.Unknown == "" {
					known++
				}
			}
			if known == 0 {
				b.Fatalf("none of %d estimates has a time", len(f.made))
			}
			b.ReportMetric(float64(known), "known/op")
		})
	}
}

const siteQueues = 10

// fullSite is a ledger with a full site, which changes between any two looks.
type fullSite struct {
	keeper
	live    store.LiveState
	version int64
}

func (s *fullSite) Waiting(context.Context) (waits bool, version int64, err error) {
	s.version++
	return true, s.version, nil
}

// LiveState returns the first ones of each queue, as Postgres does.
func (s *fullSite) LiveState(_ context.Context, perQueue, most int) (store.LiveState, error) {
	live, waiting := s.live, map[string]int{}
	live.Part = min(perQueue, most/siteQueues)
	live.Workloads = nil
	for _, w := range s.live.Workloads {
		if w.Phase == workload.Queued {
			if waiting[w.Queue]++; waiting[w.Queue] > live.Part {
				live.Left++
				continue
			}
		}
		live.Workloads = append(live.Workloads, w)
	}
	return live, nil
}

func (s *fullSite) Ended(context.Context, []workload.ID, int64, int64, int) ([]workload.Record, error) {
	return nil, nil
}

// siteOf is a site with nodes of eight GPUs, each held by a gang of its own, and gangs of one to
// eight such pods that wait.
func siteOf(now time.Time, nodes, waiting int) store.LiveState {
	live := store.LiveState{Stored: state.Stored{Policy: quota.Config{Flavors: []quota.Flavor{{Name: "gpu"}}}}}
	for i := range siteQueues {
		name := fmt.Sprintf("queue-%d", i)
		live.Queues = append(live.Queues, state.Queue{Name: name, Namespaces: []string{name}})
		live.Policy.ClusterQueues = append(live.Policy.ClusterQueues, quota.ClusterQueue{Name: name, Cohort: "all", QuotaCheckStrategy: quota.IgnoreUndeclared, ResourceGroups: []quota.ResourceGroup{{
			CoveredResources: []resource.Name{"nvidia.com/gpu"},
			Flavors:          []quota.FlavorQuotas{{Name: "gpu", Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: int64(nodes) * 8 / siteQueues}}}},
		}}})
	}
	gang := func(pods int, runs time.Duration) workload.Record {
		live.LastOrder++
		queue := live.Queues[live.LastOrder%siteQueues].Name
		r := workload.Record{Phase: workload.Queued, Attempt: 1, Times: workload.Times{Submitted: now.Add(-time.Hour)}, Workload: workload.Workload{
			ID: workload.ID(fmt.Sprintf("0b7f6c1e-4f0a-5c1d-9d3e-%012d", live.LastOrder)), Queue: queue, Namespace: queue,
			Kind: workload.KindRayCluster, Name: fmt.Sprintf("gang-%d", live.LastOrder), PodSets: []workload.PodSet{{
				Name: "w", Role: workload.RoleWorker, Count: pods, Template: workload.Template{Requests: resource.List{"cpu": 8000, "nvidia.com/gpu": 8, resource.Pods: 1}},
			}},
		}}
		r.Life.RunTime = workload.Duration(runs)
		return r
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		live.Nodes = append(live.Nodes, state.StoredNode{Present: true, Node: capacity.Node{
			Cluster: "c", Name: name, Ready: true, Allocatable: resource.List{"cpu": 96_000, "nvidia.com/gpu": 8, resource.Pods: 110},
		}})
		r := gang(1, time.Duration(10+i%1000)*time.Minute)
		r.Phase, r.Cluster, r.Holding = workload.Running, "c", true
		r.Placements = []workload.Placement{{PodSet: "w", Node: name, Pods: 1}}
		r.Flavors = []workload.PodSetFlavors{{PodSet: "w", Flavors: map[resource.Name]string{"nvidia.com/gpu": "gpu"}}}
		r.Times.Admitted, r.Times.Dispatched, r.Times.Running = now, now, now
		live.Workloads = append(live.Workloads, state.StoredWorkload{Record: r, Order: live.LastOrder})
	}
	for i := range waiting {
		r := gang(1+i%8, time.Duration(10+i%1000)*time.Minute)
		live.Workloads = append(live.Workloads, state.StoredWorkload{Record: r, Order: live.LastOrder})
	}
	return live
}
