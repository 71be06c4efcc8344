package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestACheckpointIsBelievedWithinBounds: one that cannot be is not noted, one to come counts as
// that of the report, once, also for the next leader, and an annotation that has gone takes
// nothing back.
func TestACheckpointIsBelievedWithinBounds(t *testing.T) {
	t.Parallel()
	type report struct{ when, at int } // in seconds since the admission; at 0 the annotation has gone
	for name, c := range map[string]struct {
		reports     []report
		last, count int
	}{
		"one":                  {[]report{{100, 90}}, 90, 1},
		"now":                  {[]report{{100, 100}}, 100, 1},
		"at the admission":     {[]report{{100, -5}}, 0, 0},
		"to come":              {[]report{{100, 500}}, 100, 1},
		"to come, again":       {[]report{{100, 500}, {200, 500}}, 100, 1},
		"to come, and come":    {[]report{{100, 500}, {600, 500}}, 100, 1},
		"one between":          {[]report{{100, 500}, {200, 190}, {600, 500}}, 190, 2},
		"another time to come": {[]report{{100, 500}, {200, 600}}, 200, 2},
		"too near":             {[]report{{100, 90}, {105, 99}}, 90, 1},
		"just far enough":      {[]report{{100, 90}, {105, 100}}, 100, 2},
		"the same again":       {[]report{{100, 90}, {200, 90}}, 90, 1},
		"an earlier one":       {[]report{{100, 90}, {200, 50}}, 90, 1},
		"gone":                 {[]report{{100, 90}, {200, 0}}, 90, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tells := map[string]func(s *stage, at time.Time){
				"annotation": func(s *stage, at time.Time) {
					s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, LastCheckpoint: at}, s.now, s.now)
				},
				"message": func(s *stage, at time.Time) {
					if !at.IsZero() {
						s.Checkpoint(&event.WorkloadCheckpoint{Workload: gangID, Attempt: 1, At: at}, s.now)
					}
				},
			}
			for _, door := range []string{"annotation", "message", "annotation, with leaders replaced", "message, with leaders replaced"} {
				way, _, replaced := strings.Cut(door, ",")
				tell, s := tells[way], newStage(t, workload.Rules{}, 3)
				s.created(true)
				begin := s.gang().Times.Admitted
				for i, r := range c.reports {
					if i > 0 && replaced {
						s.replaceLeader()
					}
					s.now = begin.Add(time.Duration(r.when) * time.Second)
					at := begin.Add(time.Duration(r.at) * time.Second)
					if r.at == 0 {
						at = time.Time{}
					}
					tell(s, at)
				}
				saved := s.gang().Saved()
				switch {
				case c.count == 0 && saved != nil:
					t.Errorf("%s: noted is %+v, want nothing", door, saved)
				case c.count > 0 && (saved == nil || saved.Count != c.count || !saved.At.Equal(begin.Add(time.Duration(c.last)*time.Second))):
					t.Errorf("%s: noted is %+v, want the second %d and %d in all", door, saved, c.last, c.count)
				}
			}
		})
	}
}

// TestACheckpointIsReportedByMessage: who runs, or has the grace of its end, reports; the row
// and an event have it, and the history does not.
func TestACheckpointIsReportedByMessage(t *testing.T) {
	t.Parallel()
	running := func(s *stage) { s.created(true) }
	const before = 500 * time.Millisecond
	for name, c := range map[string]struct {
		prepare func(*stage)
		report  event.WorkloadCheckpoint
		noted   bool
		refusal string
	}{
		"of before":       {running, event.WorkloadCheckpoint{By: "ann", At: time.Unix(999_999, 0)}, false, "checkpoint not noted: the attempt was admitted at 1970-01-12T13:46:40Z, and 1970-01-12T13:46:39Z is not"},
		"running":         {running, event.WorkloadCheckpoint{By: "ann"}, true, ""},
		"this attempt":    {running, event.WorkloadCheckpoint{By: "ann", Attempt: 1}, true, ""},
		"its submitter":   {running, event.WorkloadCheckpoint{By: "alice", Submitter: "http/alice"}, true, ""},
		"being evicted":   {func(s *stage) { running(s); s.Requeue(&event.WorkloadRequeue{Workload: gangID}, s.now) }, event.WorkloadCheckpoint{By: "ann"}, true, ""},
		"being cancelled": {func(s *stage) { running(s); s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now) }, event.WorkloadCheckpoint{By: "ann"}, true, ""},
		"another attempt": {running, event.WorkloadCheckpoint{By: "ann", Attempt: 2}, false, ""},
		"another's":       {running, event.WorkloadCheckpoint{By: "bob", Submitter: "http/bob"}, false, ""},
		"starting":        {nil, event.WorkloadCheckpoint{By: "ann"}, false, "checkpoint not noted: it is admitted, and only"},
		"evicted before it ran": {
			func(s *stage) { s.Requeue(&event.WorkloadRequeue{Workload: gangID}, s.now) },
			event.WorkloadCheckpoint{By: "ann"}, false, "checkpoint not noted: it is evicting, and only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(60)}}, 3)
			q := s.queues["q"]
			q.Rules.Submitters = []workload.Submitters{{Who: []string{"http/alice"}}}
			s.queues["q"] = q
			if c.prepare != nil {
				c.prepare(s)
			}
			s.Flush()
			s.now = s.now.Add(30 * time.Second)
			if c.report.Workload = gangID; c.report.At.IsZero() {
				c.report.At = s.now.Add(-before)
			}
			if !s.Checkpoint(&c.report, s.now) {
				t.Fatal("the workload is not live")
			}
			changes := s.Flush()
			if len(changes.History) > 0 {
				t.Errorf("the history has %+v", changes.History)
			}
			if want := s.now.Add(-time.Second); c.noted != (s.gang().Saved() != nil) || c.noted && !s.gang().Saved().At.Equal(want) {
				t.Errorf("noted is %+v, want %s: %t", s.gang().Saved(), want, c.noted)
			}
			if c.noted && (len(changes.Updated) != 1 || changes.Updated[0].Saved() == nil || len(changes.Messages) != 1) {
				t.Errorf("stored is %+v with %d messages, want the checkpoint and an event", changes.Updated, len(changes.Messages))
			}
			var refusal string
			if len(changes.Messages) > 0 {
				if changed := changes.Messages[0].Payload.(*event.WorkloadChanged); event.IsRefusal(changed.Reason) {
					refusal = changed.Reason.Message
				}
			}
			if !strings.HasPrefix(refusal, c.refusal) || (refusal == "") != (c.refusal == "") {
				t.Errorf("the refusal is %q, want %q", refusal, c.refusal)
			}
		})
	}
	s := newStage(t, workload.Rules{}, 0)
	if s.Checkpoint(&event.WorkloadCheckpoint{Workload: "unknown"}, s.now) {
		t.Error("an unknown workload is live")
	}
}

// TestAnotherIntervalOfTheQueueCountsAtOnce: a gang of ten hours that has saved its work a
// minute ago is evicted before one of an hour, from when its queue declares an interval.
func TestAnotherIntervalOfTheQueueCountsAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		configured workload.Seconds
		want       workload.ID
	}{"none": {0, "short"}, "two hours": {7200, gangID}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patient := workload.Rules{Life: workload.Life{ReadyDeadline: workload.Duration(1000 * time.Hour)}}
			policy := quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "q", Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority}}}}
			queue := Queue{Name: "q", Namespaces: []string{"ns"}, Rules: patient}
			s := &stage{T: t, now: time.Unix(1_000_000, 0), pods: map[string]event.GangPod{}}
			s.State = New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{queue}, Policy: policy})
			s.node("n0", nil)
			s.node("n1", nil)
			submit := func(id workload.ID, priority int32) {
				s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
					ID: id, Queue: "q", Kind: "RayCluster", Name: string(id), Priority: priority,
					PodSets: []workload.PodSet{podSet("headgroup", workload.RoleHead, 1)},
				}}, nil, s.now)
				s.step(0)
			}
			submit(gangID, 0)
			s.created(true)
			s.step(9 * time.Hour)
			submit("short", 0)
			s.step(time.Hour)
			s.Checkpoint(&event.WorkloadCheckpoint{Workload: gangID, At: s.now.Add(-time.Minute)}, s.now)
			queue.Rules.CheckpointInterval = c.configured
			s.ApplyConfiguration([]Queue{queue}, policy, s.version)
			submit("urgent", 5)
			for _, id := range []workload.ID{gangID, "short"} {
				if e := s.live.Get(id); (e.Phase == workload.Evicting) != (id == c.want) {
					t.Errorf("%s is %s because of %+v, want %s to be evicted", id, e.Phase, e.Reason, c.want)
				}
			}
		})
	}
}

// TestWhatAnEvictionWouldLoseIsExplained: of a workload that has started, the explanation has
// what it would lose now, which is less once it has saved its work; of one that is being evicted
// it has nothing.
func TestWhatAnEvictionWouldLoseIsExplained(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(60)}}, 3)
	explained := func() *workload.EvictionCost {
		t.Helper()
		whole, err := s.Explain(gangID, s.now)
		if err != nil {
			t.Fatal(err)
		}
		handed, err := s.HandOver(gangID, "", s.now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole.Eviction, handed.Known.Eviction); diff != "" {
			t.Errorf("to another goroutine it costs something else (-explained +handed over):\n%s", diff)
		}
		return whole.Eviction
	}
	s.created(true)
	s.step(100 * time.Second)
	admitted := s.gang().Times.Admitted
	before := explained()
	if before == nil || before.Checkpoint || !before.Since.Equal(admitted) || before.Lost <= 0 {
		t.Fatalf("without a report it would lose %+v, want all since %s", before, admitted)
	}
	units := before.Lost / int64(s.now.Sub(admitted)/time.Second)
	s.Checkpoint(&event.WorkloadCheckpoint{Workload: gangID, At: s.now.Add(-10 * time.Second)}, s.now)
	after := explained()
	if after == nil || !after.Checkpoint || !after.Since.Equal(s.now.Add(-10*time.Second)) || after.Lost != 10*units {
		t.Errorf("with a report it would lose %+v, want the ten seconds since then of %d", after, units)
	}
	s.Requeue(&event.WorkloadRequeue{Workload: gangID}, s.now)
	if s.is(workload.Evicting, workload.ReasonRequeued); explained() != nil {
		t.Errorf("while it is evicted it would lose %+v, want nothing", explained())
	}
}
