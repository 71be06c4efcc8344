package admission_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// happening is one recorded input.
type happening struct {
	submit *workload.Workload
	node   *capacity.Node
	ended  int // of the gangs that were submitted, from 1; 0 for none
	pass   time.Duration
}

// replay plays recorded inputs on a state of its own; victims go at once.
func replay(t *rapid.T, c quota.Config, record []happening) []admission.Plan {
	tree, err := quota.New(c)
	if err != nil {
		t.Fatal(err)
	}
	s, now := admission.NewState(tree), start
	gangs, orders := map[workload.ID]workload.Workload{}, map[workload.ID]int64{}
	var submitted []workload.ID
	enter := func(id workload.ID) {
		w := gangs[id]
		s.Enqueue(admission.Waiting{Workload: &w, Order: orders[id]})
	}
	var plans []admission.Plan
	for i, h := range record {
		now = now.Add(h.pass)
		if h.submit != nil {
			gangs[h.submit.ID], orders[h.submit.ID] = *h.submit, int64(i)
			submitted = append(submitted, h.submit.ID)
			enter(h.submit.ID)
		}
		if h.node != nil {
			s.SetNode(*h.node)
		}
		if h.ended > 0 && h.ended <= len(submitted) {
			s.Dequeue(submitted[h.ended-1])
			s.Leave(submitted[h.ended-1])
			s.Release(submitted[h.ended-1])
		}
		plan := admission.Decide(s, now)
		plans = append(plans, plan)
		for _, v := range plan.Evictions {
			s.Release(v.Workload)
			enter(v.Workload)
		}
	}
	return plans
}

// The same recorded inputs give the same plans, each time and on any number of
// processors. It changes that number, so it does not run beside others.
func TestReplayGivesTheSamePlans(t *testing.T) {
	processors := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(processors)
	rapid.Check(t, func(t *rapid.T) {
		c := drawPolicy(t)
		record := make([]happening, rapid.IntRange(1, 40).Draw(t, "inputs"))
		for i := range record {
			h := &record[i]
			h.pass = time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second
			switch rapid.IntRange(0, 4).Draw(t, "input") {
			case 0, 1:
				h.submit = drawGang(t, i)
			case 2, 3:
				n := drawNode(t)
				h.node = &n
			default:
				h.ended = rapid.IntRange(1, 10).Draw(t, "ended")
			}
		}
		runtime.GOMAXPROCS(1)
		first := replay(t, c, record)
		runtime.GOMAXPROCS(2)
		if diff := cmp.Diff(first, replay(t, c, record)); diff != "" {
			t.Fatalf("replayed (-first time +second time):\n%s", diff)
		}
	})
}

// FuzzDecide lets the fuzzer choose policy and events; what must hold is that of
// TestPromisesHoldWhateverHappens.
func FuzzDecide(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		m := newModel(t, drawPolicy(t))
		for i := range rapid.IntRange(1, 40).Draw(t, "events") {
			m.step(i)
		}
		m.calm()
	}))
}
