package simulation_test

import (
	"cmp"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/pkg/whatif/swf"
)

// counted is EASY backfill on a number of processors, as the field describes it:
// an oracle that knows no nodes, queues or gangs. shortest orders those who pass
// by the time that they ask for.
func counted(jobs []swf.Job, processors int64, shortest bool) (starts []int64) {
	type running struct{ index, end, asked int64 }
	starts = make([]int64, len(jobs))
	free := processors
	var queue []int64
	var active []running
	start := func(i, now int64) {
		free -= jobs[i].AskProcessors
		starts[i] = now
		active = append(active, running{i, now + min(jobs[i].Run, jobs[i].AskTime), now + jobs[i].AskTime})
	}
	pass := func(now int64) {
		for len(queue) > 0 && jobs[queue[0]].AskProcessors <= free {
			start(queue[0], now)
			queue = queue[1:]
		}
		if len(queue) == 0 {
			return
		}
		byEnd := slices.SortedFunc(slices.Values(active), func(a, b running) int { return cmp.Compare(a.asked, b.asked) })
		need, at, shadow := jobs[queue[0]].AskProcessors, free, int64(0)
		for _, r := range byEnd {
			if at >= need && r.asked > shadow {
				break
			}
			at, shadow = at+jobs[r.index].AskProcessors, r.asked
		}
		extra := at - need
		candidates := slices.Clone(queue[1:])
		if shortest {
			slices.SortStableFunc(candidates, func(a, b int64) int { return cmp.Compare(jobs[a].AskTime, jobs[b].AskTime) })
		}
		for _, i := range candidates {
			asked, ends := jobs[i].AskProcessors, now+jobs[i].AskTime
			if asked > free || ends > shadow && asked > extra {
				continue
			}
			if ends > shadow {
				extra -= asked
			}
			start(i, now)
			queue = slices.DeleteFunc(queue, func(other int64) bool { return other == i })
		}
	}
	for next := 0; next < len(jobs) || len(active) > 0; {
		ending := -1
		for i, r := range active {
			if ending < 0 || r.end < active[ending].end {
				ending = i
			}
		}
		if next < len(jobs) && (ending < 0 || jobs[next].Submit <= active[ending].end) {
			queue = append(queue, int64(next))
			if next++; jobs[next-1].AskProcessors <= free {
				pass(jobs[next-1].Submit)
			}
			continue
		}
		gone := active[ending]
		active = slices.Delete(active, ending, ending+1)
		free += jobs[gone.index].AskProcessors
		pass(gone.end)
	}
	return starts
}

// What Muster decides on nodes of one processor is what EASY decides on a number
// of processors, job for job.
func TestBackfillIsEASYWhereNodesAreAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		processors := rapid.Int64Range(1, 8).Draw(t, "processors")
		var log swf.Log
		at := int64(0)
		for i := range rapid.IntRange(1, 40).Draw(t, "jobs") {
			at += rapid.Int64Range(0, 40).Draw(t, "later")
			log.Jobs = append(log.Jobs, swf.Job{
				Line: i + 1, Number: int64(i), Submit: at, Run: rapid.Int64Range(1, 120).Draw(t, "run"),
				AskProcessors: rapid.Int64Range(1, processors).Draw(t, "asked"), AskTime: rapid.Int64Range(1, 120).Draw(t, "time"),
			})
		}
		for name, shortest := range map[string]bool{"easy": false, "easy-sjbf": true} {
			policy, err := simulation.ParsePolicy(name)
			if err != nil {
				t.Fatal(err)
			}
			_, starts, err := simulation.Starts(log, int(processors), policy)
			if err != nil {
				t.Fatal(err)
			}
			if want := counted(log.Jobs, processors, shortest); !slices.Equal(want, starts) {
				t.Errorf("%s starts the jobs at %v, EASY at %v", name, starts, want)
			}
		}
	})
}

// kthPath names the log of the KTH SP2, which is not part of this repository
// (Parallel Workloads Archive, KTH-SP2-1996-2).
const kthPath = "MUSTER_KTH_SP2"

// The published experiments on this log (Gaussier et al., SC'15) give 92.58 for
// EASY and 69.41 with the shortest first among those who pass.
func TestPublishedFigures(t *testing.T) {
	t.Parallel()
	path := os.Getenv(kthPath)
	if path == "" {
		t.Skip("the log is not here: set " + kthPath)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	log, err := swf.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"easy": 92.5765, "easy-sjbf": 69.4054} {
		t.Run(name, func(t *testing.T) {
			policy, err := simulation.ParsePolicy(name)
			if err != nil {
				t.Fatal(err)
			}
			result, err := simulation.Run(log, 100, policy, simulation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.AverageBoundedSlowdown; got < want-0.005 || got > want+0.005 {
				t.Errorf("%s: average bounded slowdown is %.4f, published are %.4f", name, got, want)
			}
		})
	}
}
