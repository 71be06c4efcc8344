package usage_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

// reported is what a report of the history has, as a meter counts it.
func reported(t *rapid.T, h history, until float64) map[usage.Series]usage.Used {
	report, err := usage.Report(context.Background(), h, query.UsageRequest{Since: day, Until: at(until), By: []string{query.ByQueue, query.ByFlavor, query.ByCluster}}, nil, at(until))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[usage.Series]usage.Used{}
	for _, row := range report.Rows {
		for _, u := range row.Resources {
			if u.Resource == gpu {
				sums[usage.Series{Queue: row.Key[0], Flavor: row.Key[1], Cluster: row.Key[2]}] = usage.Used{Reserved: u.Reserved, Running: u.Running, Wasted: u.Wasted()}
			}
		}
	}
	return sums
}

// drawLife draws the steps of a workload: attempts that start, run, may save, idle, change their
// size, and are evicted or end. The last one ends or runs on.
func drawLife(t *rapid.T, id workload.ID) (h history, end float64) {
	minute := float64(rapid.IntRange(0, 60).Draw(t, "begins"))
	queue := rapid.SampledFrom([]string{"q", "r"}).Draw(t, "queue")
	flavor, cluster := rapid.SampledFrom([]string{"a100", "h100"}).Draw(t, "flavor"), rapid.SampledFrom([]string{"c", "d"}).Draw(t, "cluster")
	gpus := int64(rapid.IntRange(1, 8).Draw(t, "holds"))
	add := func(phase workload.Phase, attempt int, held int64, change ...func(*workload.UsageStep)) {
		s := step(minute, phase, attempt, held, change...)
		s.Workload, s.Usage.Queue, s.Cluster = id, queue, cluster
		for i := range s.Usage.Held {
			s.Usage.Held[i].Flavor, s.Usage.Held[i].Resources = flavor, s.Usage.Held[i].Resources.Plus(resource.List{resource.CPU: 4000})
		}
		h = append(h, s)
		minute += float64(rapid.IntRange(0, 90).Draw(t, "later"))
	}
	for attempt := range rapid.IntRange(1, 3).Draw(t, "attempts") {
		first := func(*workload.UsageStep) {}
		if attempt == 0 {
			first = since(minute)
		}
		add(workload.Admitted, attempt+1, gpus, first)
		if rapid.Bool().Draw(t, "runs") {
			add(workload.Running, attempt+1, gpus)
			if gpus = int64(rapid.IntRange(1, 8).Draw(t, "then")); rapid.Bool().Draw(t, "resizes") {
				add(workload.Running, attempt+1, gpus)
			}
		}
		change := []func(*workload.UsageStep){func(*workload.UsageStep) {}, saved(minute - 7), idle(minute - 5)}[rapid.IntRange(0, 2).Draw(t, "change")]
		add(workload.Evicting, attempt+1, gpus, change)
		add(workload.Queued, attempt+2, 0, change)
	}
	if rapid.Bool().Draw(t, "runs on") {
		add(workload.Admitted, 9, gpus)
		add(workload.Running, 9, gpus)
	}
	return h, minute
}

// drawHistory draws lives of some workloads.
func drawHistory(t *rapid.T) (h history, end float64) {
	for i := range rapid.IntRange(1, 5).Draw(t, "workloads") {
		life, last := drawLife(t, workload.ID(fmt.Sprint("w", i)))
		h, end = append(h, life...), math.Max(end, last)
	}
	slices.SortStableFunc(h, func(a, b usage.Step) int { return a.At.Compare(b.At) })
	return h, end + 1
}

// TestTheMeterIsTheReport: whatever happens, a meter has at the end what a report of the same
// history has.
func TestTheMeterIsTheReport(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, end := drawHistory(t)
		meter := usage.NewMeter(100)
		meter.Begin(day, nil)
		for _, s := range h {
			meter.Add(s)
			meter.At(s.At)
		}
		got, want := meter.At(at(end)), reported(t, h, end)
		for _, of := range slices.Concat(usage.SeriesOf(got), usage.SeriesOf(want)) { // those of no time are in the first alone
			if g, w := got[of], want[of]; math.Abs(g.Reserved-w.Reserved)+math.Abs(g.Running-w.Running)+math.Abs(g.Wasted-w.Wasted) > 1e-3 {
				t.Errorf("%v: %v, the report has %v", of, g, w)
			}
		}
	})
}

// TestTheMeterNeverGoesBack: where a meter is read a minute ahead of steps that free places, it
// never becomes less, and is not further ahead of the report than what was held in that minute.
func TestTheMeterNeverGoesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, end := drawHistory(t)
		meter, before := usage.NewMeter(100), map[usage.Series]usage.Used{}
		meter.Begin(day, nil)
		for _, s := range h {
			for of, now := range meter.At(s.At.Add(time.Minute)) {
				if was := before[of]; now.Reserved < was.Reserved || now.Running < was.Running || now.Wasted < was.Wasted {
					t.Fatalf("%v went from %v back to %v", of, was, now)
				}
				before[of] = now
			}
			meter.Add(s)
		}
		got := meter.At(at(end))
		for of, want := range reported(t, h, end) {
			if ahead := got[of].Reserved - want.Reserved; ahead < -1e-3 || ahead > 5*8*60 {
				t.Errorf("%v: %v, the report has %v", of, got[of], want)
			}
		}
	})
}

// TestTheMeterRunsOn: while a gang runs, the rate of the meter is what it holds.
func TestTheMeterRunsOn(t *testing.T) {
	t.Parallel()
	of := usage.Series{Queue: "q", Flavor: "a100", Cluster: "c"}
	meter := usage.NewMeter(100)
	meter.Begin(day, nil)
	meter.Add(step(0, workload.Admitted, 1, 4, since(0)))
	for _, step := range []struct {
		minute float64
		add    *usage.Step
		want   usage.Used // minutes of GPUs
	}{
		{2, nil, usage.Used{Reserved: 8, Wasted: 8}},
		{2, ptr(step(2, workload.Running, 1, 4)), usage.Used{Reserved: 8, Wasted: 8}},
		{5, nil, usage.Used{Reserved: 20, Running: 12, Wasted: 8}},
		{6, nil, usage.Used{Reserved: 24, Running: 16, Wasted: 8}},
		{6, ptr(step(6, workload.Evicting, 1, 4)), usage.Used{Reserved: 24, Running: 16, Wasted: 8}},
		{7, nil, usage.Used{Reserved: 28, Running: 16, Wasted: 8}},
		{7, ptr(step(7, workload.Queued, 2, 0)), usage.Used{Reserved: 28, Running: 16, Wasted: 24}},
		{60, nil, usage.Used{Reserved: 28, Running: 16, Wasted: 24}},
	} {
		if step.add != nil {
			meter.Add(*step.add)
		}
		got := meter.At(at(step.minute))[of]
		if diff := cmp.Diff(usage.Used{Reserved: 60 * step.want.Reserved, Running: 60 * step.want.Running, Wasted: 60 * step.want.Wasted}, got); diff != "" {
			t.Errorf("minute %v: %s", step.minute, diff)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestTheMeterCountsInTerms: what is held between two terms is not counted, and what was held
// before a term goes on.
func TestTheMeterCountsInTerms(t *testing.T) {
	t.Parallel()
	of := usage.Series{Queue: "q", Flavor: "a100", Cluster: "c"}
	meter := usage.NewMeter(100)
	meter.Add(step(0, workload.Admitted, 1, 4)) // before any term
	held := []usage.Step{step(-20, workload.Admitted, 1, 2), step(-10, workload.Running, 1, 2)}
	meter.Begin(day, held)
	meter.End(at(10))
	if got := meter.At(at(15))[of]; got != (usage.Used{Reserved: 1200, Running: 1200}) {
		t.Errorf("after a term: %v", got)
	}
	meter.Begin(at(20), held)
	meter.Add(step(30, workload.Succeeded, 1, 2))
	meter.Add(step(31, workload.Succeeded, 1, 0))
	if got := meter.At(at(40))[of]; got != (usage.Used{Reserved: 1200 + 1320, Running: 2400}) {
		t.Errorf("after the next: %v", got)
	}
}

// TestTheSeriesOfAMeterAreBounded: what is beyond the bound counts in one series.
func TestTheSeriesOfAMeterAreBounded(t *testing.T) {
	t.Parallel()
	meter := usage.NewMeter(3)
	meter.Begin(day, nil)
	for i := range 10 {
		s := step(0, workload.Admitted, 1, 1, since(0))
		s.Workload, s.Usage.Queue = workload.ID(fmt.Sprint(i)), fmt.Sprint("q", i)
		meter.Add(s)
		meter.At(day) // it has a series as soon as it is seen
	}
	got := meter.At(at(1))
	if others := got[usage.Series{Queue: usage.Others, Flavor: usage.Others, Cluster: usage.Others}]; len(got) != 3 || others.Reserved != 8*60 {
		t.Errorf("%d series, of others %v: %v", len(got), others, got)
	}
}
