package estimate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/pkg/whatif/world"
)

const (
	gpu  = resource.Name("nvidia.com/gpu")
	gpus = 4
)

var start = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// exact are run times that are known: the declared ones.
type exact struct{}

func (exact) Predict(w *workload.Workload, _ time.Duration) (time.Duration, bool) {
	return time.Duration(w.Life.RunTime), w.Life.RunTime > 0
}

// gang of a pod for each GPU. Without a run time nothing says when it ends.
func gang(name string, pods int, runs time.Duration) workload.Workload {
	return workload.Workload{
		ID: event.WorkloadID("test", name), Queue: "q", Namespace: "n", Kind: workload.KindRayJob, Name: name, Digest: name,
		Life: workload.Life{RunTime: workload.Duration(runs)},
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: pods, Template: workload.Template{
			Requests: resource.List{gpu: 1, resource.Pods: 1},
		}}},
	}
}

// fleet is a queue and a node of four GPUs.
func fleet(strategy string) (queues []state.Queue, policy quota.Config, nodes []capacity.Node) {
	return []state.Queue{{Name: "q", Namespaces: []string{"n"}, Strategy: strategy}},
		quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "q", Strategy: strategy}}},
		[]capacity.Node{{Cluster: "c", Name: "node", Ready: true, Allocatable: resource.List{gpu: gpus, resource.Pods: 100}}}
}

// live is a world in which the gangs were submitted at start, and its snapshot.
func live(t interface{ Fatal(...any) }, strategy string, gangs ...workload.Workload) (*world.World, estimate.Snapshot) {
	queues, policy, nodes := fleet(strategy)
	w := world.New(world.Options{Start: start, Queues: queues, Policy: policy, Nodes: nodes})
	for _, g := range gangs {
		if _, err := w.Submit(g, ""); err != nil {
			t.Fatal(err)
		}
	}
	return w, snapshot(w, strategy, gangs)
}

func snapshot(w *world.World, strategy string, gangs []workload.Workload) estimate.Snapshot {
	s := estimate.Snapshot{Now: w.Now()}
	s.Queues, s.Policy, s.Nodes = fleet(strategy)
	for _, g := range gangs {
		switch r, known := w.Record(g.ID); {
		case known && r.Holding:
			s.Running = append(s.Running, r)
		case known:
			s.Waiting = append(s.Waiting, r)
		}
	}
	return s
}

func TestFastForward(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strategy string
		gangs    []workload.Workload
		want     map[string]time.Duration // starts after the snapshot
		endless  int
	}{
		"one after the other": {
			quota.StrictFIFO, []workload.Workload{gang("a", 4, time.Hour), gang("b", 4, time.Minute), gang("c", 4, time.Minute)},
			map[string]time.Duration{"b": time.Hour, "c": time.Hour + time.Minute}, 0,
		},
		"a later one passes": {
			quota.BestEffortFIFO, []workload.Workload{gang("a", 3, time.Hour), gang("b", 4, time.Minute), gang("c", 1, time.Minute), gang("d", 1, time.Minute)},
			map[string]time.Duration{"b": time.Hour, "d": time.Minute}, 0,
		},
		"behind one without an end": {
			quota.StrictFIFO, []workload.Workload{gang("a", 2, 0), gang("b", 2, time.Minute), gang("c", 2, time.Minute), gang("d", 4, time.Minute)},
			map[string]time.Duration{"c": time.Minute}, 1,
		},
		"never": {quota.BestEffortFIFO, []workload.Workload{gang("a", 5, time.Hour)}, map[string]time.Duration{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := live(t, c.strategy, c.gangs...)
			got, err := estimate.FastForward(s, exact{}, estimate.Bounds{})
			if err != nil {
				t.Fatal(err)
			}
			starts := map[string]time.Duration{}
			for _, g := range c.gangs {
				if at, known := got.Starts[g.ID]; known {
					starts[g.Name] = at.Sub(start)
				}
			}
			if diff := cmp.Diff(c.want, starts); diff != "" || len(got.Endless) != c.endless || got.Cut {
				t.Errorf("the forecast is %+v; starts (-want +got):\n%s", got, diff)
			}
		})
	}
}

// TestBounds: a play that is cut says so, and has no start of what it did not reach.
func TestBounds(t *testing.T) {
	t.Parallel()
	gangs := []workload.Workload{gang("a", 4, time.Hour), gang("b", 4, time.Hour), gang("c", 4, time.Hour), gang("d", 4, time.Hour)}
	for name, c := range map[string]struct {
		bounds estimate.Bounds
		starts int
	}{
		"ends":    {estimate.Bounds{Ends: 2}, 2},
		"horizon": {estimate.Bounds{Horizon: 90 * time.Minute}, 1},
		"enough":  {estimate.Bounds{Enough: func() bool { return true }}, 0},
		"until":   {estimate.Bounds{Until: []workload.ID{gangs[2].ID}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := live(t, quota.StrictFIFO, gangs...)
			got, err := estimate.FastForward(s, exact{}, c.bounds)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Starts) != c.starts || !got.Cut {
				t.Errorf("got %+v, want %d starts, cut", got, c.starts)
			}
		})
	}
}

// TestEvictingGangsGo: places of a gang that is being removed are free when its grace is
// over, and it starts again behind what waits before it.
func TestEvictingGangsGo(t *testing.T) {
	t.Parallel()
	gangs := []workload.Workload{gang("a", 4, time.Hour), gang("b", 4, time.Hour)}
	_, s := live(t, quota.StrictFIFO, gangs...)
	s.Running[0].Phase, s.Running[0].EvictAt = workload.Evicting, start.Add(time.Minute)
	s.Running[0].Reason = &workload.Reason{Kind: workload.ReasonPreempted}
	got, err := estimate.FastForward(s, exact{}, estimate.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[workload.ID]time.Time{gangs[0].ID: start.Add(time.Minute), gangs[1].ID: start.Add(61 * time.Minute)}
	if diff := cmp.Diff(want, got.Starts); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

// TestForecastsComeTrue: where run times are known and nothing is submitted later, each gang
// starts when the forecast says, at whatever moment it is made.
func TestForecastsComeTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		strategy := rapid.SampledFrom([]string{quota.StrictFIFO, quota.BestEffortFIFO, quota.Backfill}).Draw(t, "strategy")
		var gangs []workload.Workload
		for i := range rapid.IntRange(2, 12).Draw(t, "gangs") {
			// No two ends are at one time, so their order is that of the times.
			runs := time.Duration(rapid.IntRange(1, 50).Draw(t, "minutes"))*time.Minute + time.Millisecond<<i
			gangs = append(gangs, gang(fmt.Sprintf("g%d", i), rapid.IntRange(1, gpus).Draw(t, "pods"), runs))
		}
		w, first := live(t, strategy, gangs...)
		at := rapid.IntRange(0, len(gangs)-1).Draw(t, "ends before the forecast")
		forecast, err := estimate.FastForward(first, exact{}, estimate.Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		starts := map[workload.ID]time.Time{}
		for ends := 0; ; ends++ {
			if ends == at {
				if forecast, err = estimate.FastForward(snapshot(w, strategy, gangs), exact{}, estimate.Bounds{}); err != nil {
					t.Fatal(err)
				}
			}
			next := firstEnd(w, gangs)
			if next == nil {
				break
			}
			w.Jump(next.Times.Admitted.Add(time.Duration(next.Life.RunTime)))
			steps, err := w.End(next.ID, event.OutcomeSucceeded)
			if err != nil {
				t.Fatal(err)
			}
			w.Forget(next.ID)
			for _, step := range steps {
				if step.Phase == workload.Admitted {
					starts[step.ID] = step.At
				}
			}
		}
		for id, start := range forecast.Starts {
			if !starts[id].Equal(start) {
				t.Errorf("%s starts at %s, the forecast is %s", id, starts[id], start)
			}
		}
	})
}

// firstEnd is the running gang that ends next.
func firstEnd(w *world.World, gangs []workload.Workload) *workload.Record {
	var first *workload.Record
	for _, g := range gangs {
		r, known := w.Record(g.ID)
		if !known || !r.Holding {
			continue
		}
		if end := r.Times.Admitted.Add(time.Duration(r.Life.RunTime)); first == nil || end.Before(first.Times.Admitted.Add(time.Duration(first.Life.RunTime))) {
			first = &r
		}
	}
	return first
}
