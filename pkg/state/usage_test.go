package state

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// usageModel sums what the places of live workloads have over time, and what the steps of
// their lives say that they hold.
type usageModel struct {
	at             time.Time
	placed, stated resource.List
	holds          map[workload.ID]resource.List // by the last step
}

// advance sums up to a time, before anything happens then.
func (m *usageModel) advance(s *State, now time.Time) {
	seconds := int64(now.Sub(m.at) / time.Second)
	for e := range s.live.All() {
		for _, p := range e.Placements {
			m.placed = m.placed.Plus(e.requests(p.PodSet).Times(int64(p.Pods) * seconds))
		}
	}
	for _, held := range m.holds {
		m.stated = m.stated.Plus(held.Times(seconds))
	}
	m.at = now
}

func (m *usageModel) take(steps []HistoryRow) {
	for _, step := range steps {
		if step.Usage == nil {
			continue
		}
		sum := resource.List{}
		for _, h := range step.Usage.Held {
			sum = sum.Plus(h.Resources)
		}
		m.holds[step.Workload] = sum
	}
}

// compare holds what is held now against what the history says is held.
func (m *usageModel) compare(t *rapid.T, steps []HistoryRow) {
	now := usageModel{holds: map[workload.ID]resource.List{}}
	now.take(steps)
	for id, held := range m.holds {
		if !held.Equal(now.holds[id]) {
			t.Fatalf("workload %s holds %v by its history, and %v by its record", id, held, now.holds[id])
		}
	}
	if len(steps) > 0 && steps[len(steps)-1].At.After(m.at) {
		t.Fatalf("a step is at %s, after now, %s", steps[len(steps)-1].At, m.at)
	}
}

// TestUsageStepsHaveWhatIsHeld: whatever comes, the sum over the history is what the reservations
// were, to the second.
func TestUsageStepsHaveWhatIsHeld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, now := newTestState(), time.Unix(1_000_000, 0)
		m := usageModel{at: now, placed: resource.List{}, stated: resource.List{}, holds: map[workload.ID]resource.List{}}
		for seq := range uint64(rapid.IntRange(1, 60).Draw(t, "inputs")) {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			m.advance(s, now)
			for i := range uint64(rapid.IntRange(1, 4).Draw(t, "batch")) {
				drawInput(t, 4*seq+i+1)(s, now)
			}
			s.Decide(now)
			m.take(s.Flush().History)
			m.compare(t, s.HeldNow(now))
		}
		m.advance(s, now.Add(time.Hour))
		for _, name := range m.placed.Plus(m.stated).Names() {
			if m.placed[name] != m.stated[name] {
				t.Fatalf("%s: %d of it times seconds were reserved, the history has %d", name, m.placed[name], m.stated[name])
			}
		}
	})
}

// TestUsageStepsOfALife has what the steps say of a gang that is evicted after a checkpoint.
func TestUsageStepsOfALife(t *testing.T) {
	t.Parallel()
	l, now := newTestState().lifecycle, time.Unix(1_000_000, 0)
	e := &entry{
		Record: workload.Record{
			Workload: workload.Workload{ID: "w", Queue: "loose", Namespace: "ns", Submitter: "http/ann", PodSets: []workload.PodSet{{
				Name: "workers", Count: 2, Template: workload.Template{Requests: resource.List{"nvidia.com/gpu": 4}},
			}}},
			Phase: workload.Admitted, Attempt: 1, Holding: true,
			Times: workload.Times{Submitted: now.Add(-time.Hour), Admitted: now},
		},
		attemptState: &attemptState{},
	}
	step := l.usage(e, now)
	if step == nil || len(step.Held) != 1 || step.Held[0].Resources["nvidia.com/gpu"] != 8 || !step.Since.Equal(e.Times.Submitted) {
		t.Fatalf("admitted: %+v", step)
	}
	if step = l.usage(e, now.Add(time.Second)); !step.Since.IsZero() {
		t.Errorf("a later reason: since %s, want none", step.Since)
	}
	e.Phase = workload.Evicting
	e.SetSaved(&workload.Saved{Attempt: 1, At: now.Add(time.Minute), Count: 1})
	if step = l.usage(e, now); !step.Checkpoint.Equal(e.Saved().At) {
		t.Errorf("evicting: checkpoint %s, want %s", step.Checkpoint, e.Saved().At)
	}
	l.free(e)
	if step = l.usage(e, now); step == nil || len(step.Held) != 0 || !step.Checkpoint.Equal(now.Add(time.Minute)) {
		t.Errorf("freed: %+v, want the checkpoint and nothing held", step)
	}
	l.changed = newChangeSet()
	if step = l.usage(e, now); step != nil {
		t.Errorf("waiting: %+v, want none", step)
	}
}
