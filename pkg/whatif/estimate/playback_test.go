package estimate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
)

// fixedRuns is how long each workload runs.
type fixedRuns map[workload.ID]time.Duration

func (f fixedRuns) Predict(w *workload.Workload, ran time.Duration) (time.Duration, bool) {
	total, known := f[w.ID]
	return max(total, ran), known
}

// TestAHistoryIsPlayed: what came in is played at its time, and outcomes, waits and use are what
// they are by hand; with a stricter policy a gang is refused and another waits.
func TestAHistoryIsPlayed(t *testing.T) {
	t.Parallel()
	const gpu resource.Name = "nvidia.com/gpu"
	begin := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	after := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	gang := func(id workload.ID, queue string, pods int) workload.Workload {
		return workload.Workload{ID: id, Queue: queue, Namespace: "ns", Kind: workload.KindRayJob, Name: string(id), PodSets: []workload.PodSet{{
			Name: "workers", Count: pods, Template: workload.Template{Requests: resource.List{gpu: 1}},
		}}}
	}
	submit := func(minutes int, w workload.Workload) estimate.Event {
		return estimate.Event{At: after(minutes), Payload: &event.WorkloadSubmitted{Workload: w}}
	}
	node := func(name string) capacity.Node {
		return capacity.Node{Cluster: "c", Name: name, Ready: true, Allocatable: resource.List{gpu: 4, resource.Pods: 100}}
	}
	queues := []state.Queue{{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}, {Name: "gone", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}}
	snapshot := estimate.Snapshot{Now: begin, Queues: queues, Nodes: []capacity.Node{node("n1")}}
	events := []estimate.Event{
		submit(1, gang("first", "q", 4)), submit(2, gang("second", "q", 4)), submit(3, gang("third", "gone", 2)),
		{At: after(5), Payload: &event.WorkloadCancel{Workload: "second"}}, {At: after(20), Payload: &event.NodeObserved{Node: node("n2")}},
		submit(25, gang("fourth", "q", 4)),
	}
	runs := fixedRuns{"first": 30 * time.Minute, "third": 10 * time.Minute, "fourth": time.Hour}
	play := func(s estimate.Snapshot, fixed bool) estimate.Result {
		t.Helper()
		played, err := estimate.Playback(s, events, runs, after(60), fixed)
		if err != nil {
			t.Fatal(err)
		}
		return estimate.ResultOf(played, begin, estimate.Offered(s, events, after(60)))
	}
	as := play(snapshot, false)
	want := []estimate.Outcome{
		{ID: "first", Submitted: after(1), Started: after(1), Ended: after(31), Cluster: "c"}, {ID: "second", Submitted: after(2), Ended: after(5)},
		{ID: "third", Queue: "gone", Submitted: after(3), Started: after(20), Ended: after(30), Cluster: "c"}, {ID: "fourth", Submitted: after(25), Started: after(30), Cluster: "c"},
	}
	for i := range want {
		want[i].Namespace, want[i].Name = "ns", string(want[i].ID)
		if want[i].Queue == "" {
			want[i].Queue = "q"
		}
	}
	if diff := cmp.Diff(want, as.Outcomes); diff != "" {
		t.Error(diff)
	}
	if got, want := as.Held[gpu], float64(4*30*60+2*10*60+4*30*60); got != want {
		t.Errorf("%v GPU seconds are held, want %v", got, want)
	}
	// n1 has four for an hour, n2 from minute 20 on.
	if got, want := as.Utilisation[gpu], float64(4*30*60+2*10*60+4*30*60)/float64(4*60*60+4*40*60); got != want {
		t.Errorf("the utilisation is %v, want %v", got, want)
	}
	totals := estimate.Totals{Submitted: 4, Started: 3, WaitP50: 5 * 60, WaitP90: 17 * 60, WaitMax: 17 * 60, WaitMean: 22 * 60 / 3.0}
	if diff := cmp.Diff(totals, as.Totals, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Error(diff)
	}

	other := snapshot
	other.Queues = queues[:1]
	against := play(other, true)
	classes := map[workload.ID]string{}
	for _, d := range estimate.Classify(as.ByID(), against.ByID(), time.Second) {
		classes[d.ID] = d.Class
	}
	if diff := cmp.Diff(map[workload.ID]string{"third": estimate.DiffRefused, "fourth": estimate.DiffSooner}, classes); diff != "" {
		t.Error(diff)
	}
}

// TestUseBeforeTheHistoryIsNotOfIt: a gang that ran before the beginning holds its places from
// then on, so what is held is not more than what nodes offer.
func TestUseBeforeTheHistoryIsNotOfIt(t *testing.T) {
	t.Parallel()
	const gpu resource.Name = "nvidia.com/gpu"
	begin := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	ran := workload.Record{
		Workload: workload.Workload{ID: "ran", Queue: "q", Namespace: "ns", Kind: workload.KindRayJob, Name: "ran", PodSets: []workload.PodSet{{
			Name: "workers", Count: 3, Template: workload.Template{Requests: resource.List{gpu: 1}},
		}}},
		Phase: workload.Running, Attempt: 1, Cluster: "c", Holding: true, Placements: []workload.Placement{{PodSet: "workers", Node: "n1", Pods: 3}},
		Times: workload.Times{Submitted: begin.Add(-3 * time.Hour), Admitted: begin.Add(-2 * time.Hour), Running: begin.Add(-2 * time.Hour)},
	}
	s := estimate.Snapshot{
		Now: begin, Queues: []state.Queue{{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}}, Running: []workload.Record{ran},
		Nodes: []capacity.Node{{Cluster: "c", Name: "n1", Ready: true, Allocatable: resource.List{gpu: 4, resource.Pods: 100}}},
	}
	for name, c := range map[string]struct {
		runs   time.Duration
		events []estimate.Event
		want   float64
	}{
		"to the end":       {10 * time.Hour, nil, 3.0 / 4},
		"half of the time": {2*time.Hour + 30*time.Minute, nil, 3.0 / 8},
		"on a node that grew": {10 * time.Hour, []estimate.Event{{At: begin.Add(30 * time.Minute), Payload: &event.NodeObserved{Node: capacity.Node{
			Cluster: "c", Name: "n1", Ready: true, Allocatable: resource.List{gpu: 8, resource.Pods: 100},
		}}}}, 3.0 / 6},
		"beside a node that went": {10 * time.Hour, []estimate.Event{
			{At: begin, Payload: &event.NodeObserved{Node: capacity.Node{Cluster: "c", Name: "n2", Ready: true, Allocatable: resource.List{gpu: 4, resource.Pods: 100}}}},
			{At: begin.Add(30 * time.Minute), Payload: &event.NodeRemoved{Cluster: "c", Node: "n2"}},
		}, 3.0 / 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := begin.Add(time.Hour)
			played, err := estimate.Playback(s, c.events, fixedRuns{"ran": c.runs}, end, false)
			if err != nil {
				t.Fatal(err)
			}
			got := estimate.ResultOf(played, begin, estimate.Offered(s, c.events, end)).Utilisation
			if diff := cmp.Diff(c.want, got[gpu], cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
