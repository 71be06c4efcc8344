package admission_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// regretOf returns the regret of a gang of 8 GPUs that was admitted some time ago.
func regretOf(ago time.Duration, p admission.Progress) int64 {
	s := admission.NewState(nil)
	s.SetNode(nodeOf("one", 64, 8))
	holding(s, "g", "a", "one", 8, ago, p)
	accelerators, _ := admission.RegretOf(s, "g", start)
	return accelerators
}

// TestNoReportRaisesTheRegret: whatever a tenant reports, its gang is not dearer to evict than
// if it reported nothing; nor is it by a shorter interval.
func TestNoReportRaisesTheRegret(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(label string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, label)) * time.Minute
		}
		ago := minutes("ago", 0, 600)
		silent := admission.Progress{Interval: minutes("interval", 0, 300), Startup: minutes("startup", 0, 10)}
		reports := silent
		reports.Checkpoint = start.Add(-minutes("checkpoint", -100, 700))
		before, after := regretOf(ago, silent), regretOf(ago, reports)
		if after > before {
			t.Fatalf("the regret is %d with a report and %d without", after, before)
		}
		if silent.Interval == 0 && after != before {
			t.Fatalf("the regret is %d with a report and %d without, and no interval is declared", after, before)
		}
		for _, p := range []admission.Progress{silent, reports} {
			often := p
			if often.Interval = minutes("often", 1, 300); p.Interval > 0 && often.Interval > p.Interval {
				often.Interval = p.Interval
			}
			if declared, shorter := regretOf(ago, p), regretOf(ago, often); shorter > declared {
				t.Fatalf("the regret is %d at an interval of %s and %d at one of %s", declared, p.Interval, shorter, often.Interval)
			}
		}
	})
}

// TestCheckpointsDecideWhereAnIntervalIsDeclared: the gang that has saved its work goes before
// the one that would lose more, however much longer it has run.
func TestCheckpointsDecideWhereAnIntervalIsDeclared(t *testing.T) {
	t.Parallel()
	saved := start.Add(-time.Minute)
	for name, c := range map[string]struct {
		long admission.Progress // of the one that has run for ten hours, the other for one
		want workload.ID
	}{
		"no interval and no report":      {admission.Progress{}, "short"},
		"no interval":                    {admission.Progress{Checkpoint: saved}, "short"},
		"an interval and no report":      {admission.Progress{Interval: 2 * time.Hour}, "short"},
		"a short interval and no report": {admission.Progress{Interval: 30 * time.Minute}, "long"},
		"an interval and a report":       {admission.Progress{Interval: 2 * time.Hour, Checkpoint: saved}, "long"},
		"a report from before it began":  {admission.Progress{Interval: 2 * time.Hour, Checkpoint: start.Add(-11 * time.Hour)}, "short"},
		"a report that is still to come": {admission.Progress{Interval: 2 * time.Hour, Checkpoint: start.Add(time.Second)}, "short"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 16, `"withinClusterQueue": "LowerPriority"`))))
			for _, node := range []string{"one", "two"} {
				s.SetNode(nodeOf(node, 64, 8))
			}
			holding(s, "long", "a", "one", 8, 10*time.Hour, c.long)
			holding(s, "short", "a", "two", 8, time.Hour, admission.Progress{})
			s.Enqueue(admission.Waiting{Order: 2, Workload: &workload.Workload{ID: "urgent", Queue: "a", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 8, 0, 1)}}})
			plan := admission.Decide(s, start)
			if len(plan.Evictions) != 1 || plan.Evictions[0].Workload != c.want {
				t.Errorf("the plan is %+v, want %s to be evicted", plan, c.want)
			}
		})
	}
}

// TestStartsAndReturnsAreLearned: from eight measurements of workloads alike on, the mean of
// their starts counts and that of their returns is reported, also in copies of the state and in
// another configuration with the queue.
func TestStartsAndReturnsAreLearned(t *testing.T) {
	t.Parallel()
	config := gpuPolicy(t, false, gpuQueue("a", 64, ""), gpuQueue("b", 64, ""))
	s := admission.NewState(treeOf(t, config))
	for i := range 3 {
		s.SetNode(nodeOf(fmt.Sprint("node-", i), 64, 8))
	}
	holding(s, "g", "a", "node-0", 8, time.Hour, admission.Progress{Startup: time.Minute})
	holding(s, "smaller", "a", "node-1", 7, time.Hour, admission.Progress{Startup: time.Minute})
	holding(s, "elsewhere", "b", "node-2", 8, time.Hour, admission.Progress{Startup: time.Minute})
	minutes := func(s *admission.State, id workload.ID, gpus int64) int64 {
		accelerators, _ := admission.RegretOf(s, id, start)
		return accelerators / gpus / 60
	}
	for i := range 8 {
		if got := minutes(s, "g", 8); got != 61 {
			t.Errorf("after %d measurements the regret is that of %d minutes, want the 60 since the admission and the last start", i, got)
		}
		s.LearnStart("g", 5*time.Minute)
		s.LearnReturn("g", 20*time.Minute)
	}
	if stored := s.TakeLearned(); len(stored) != 1 || stored[0].Starts != (admission.Mean{Count: 8, Mean: 5 * time.Minute}) || stored[0].Returns.Count != 8 {
		t.Errorf("to be stored is %+v", stored)
	}
	if again := s.TakeLearned(); len(again) != 0 {
		t.Errorf("to be stored again is %+v", again)
	}
	if path := admission.CopyDiffers(s); path != "" {
		t.Error(path)
	}
	for what, c := range map[string]struct {
		id   workload.ID
		gpus int64
		want int64
	}{"alike": {"g", 8, 65}, "of another size": {"smaller", 7, 61}, "of another queue": {"elsewhere", 8, 61}} {
		t.Run(what, func(t *testing.T) {
			if got := minutes(s, c.id, c.gpus); got != c.want {
				t.Errorf("the regret is that of %d minutes, want %d", got, c.want)
			}
		})
	}
	if cost, text, _ := s.EvictionCost("g", start); cost.Restart != 8*300 || cost.Return != 8*1200 || text == "" {
		t.Errorf("the cost is %+v: %q", cost, text)
	}
	other, err := snapshot(s, 10).State()
	if err != nil {
		t.Fatal(err)
	}
	s.Reconfigure(treeOf(t, config))
	for what, state := range map[string]*admission.State{"snapshot": other, "reconfigured": s} {
		t.Run(what, func(t *testing.T) {
			if got := minutes(state, "g", 8); got != 65 {
				t.Errorf("the regret is that of %d minutes, want 65", got)
			}
		})
	}
	s.Release("g")
	s.Release("smaller")
	s.Reconfigure(treeOf(t, gpuPolicy(t, false, gpuQueue("b", 64, ""))))
	if left := s.Learned(); len(left) != 0 {
		t.Errorf("of a queue that is gone, %+v is kept", left)
	}
}

// TestALearnedStartIsWorthNoMoreThanAnInterval: gangs whose pods are ready late make no other
// gang dearer to evict than two of its checkpoint intervals.
func TestALearnedStartIsWorthNoMoreThanAnInterval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		interval time.Duration
		want     int64 // minutes
	}{
		"no interval":      {0, 10*60 + 4*60},
		"half an hour":     {30 * time.Minute, 60},
		"longer than that": {5 * time.Hour, 5*60 + 4*60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(nil)
			s.SetNode(nodeOf("one", 64, 8))
			holding(s, "g", "a", "one", 8, 10*time.Hour, admission.Progress{Interval: c.interval})
			for range 8 {
				s.LearnStart("g", 4*time.Hour)
			}
			if got, _ := admission.RegretOf(s, "g", start); got != c.want*60*8 {
				t.Errorf("the regret is %d, want that of %d minutes of 8 accelerators", got, c.want)
			}
		})
	}
}

// TestStartsAreLearnedByAccelerators: gangs of as many pods with fewer accelerators, or none, are
// not alike.
func TestStartsAreLearnedByAccelerators(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeOf("one", 64, 16))
	for id, gpus := range map[workload.ID]int64{"none": 0, "one": 1, "eight": 8} {
		s.Start(admission.Started{
			Workload: &workload.Workload{ID: id, Queue: "a", PodSets: []workload.PodSet{setOf("workers", 1, 3, gpus)}},
			Cluster:  "c", Placements: []workload.Placement{{PodSet: "workers", Node: "one", Pods: 1}}, Admitted: start,
		})
	}
	for range 8 {
		s.LearnStart("none", time.Hour)
		s.LearnStart("one", time.Minute)
	}
	for id, want := range map[workload.ID]int64{"none": 3600, "one": 60, "eight": 0} {
		t.Run(string(id), func(t *testing.T) {
			cost, _, started := s.EvictionCost(id, start)
			if !started || cost.Restart != want {
				t.Errorf("started: %t; the next start costs %d, want %d", started, cost.Restart, want)
			}
		})
	}
}

// TestAMeanFollowsWhatIsMeasured: what was long ago weighs little, and one measurement does not
// count for much.
func TestAMeanFollowsWhatIsMeasured(t *testing.T) {
	t.Parallel()
	var m admission.Mean
	for range 1000 {
		m = m.With(time.Minute)
	}
	if m != (admission.Mean{Count: 16, Mean: time.Minute}) {
		t.Errorf("the mean of minutes is %+v", m)
	}
	if m = m.With(17 * time.Minute); m.Mean != 2*time.Minute {
		t.Errorf("one of 17 minutes makes it %s, want 2 minutes", m.Mean)
	}
	for range 100 {
		m = m.With(time.Hour)
	}
	if m.Mean < 59*time.Minute {
		t.Errorf("after a hundred hours it is %s", m.Mean)
	}
}
