package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// TestLearnedIsKept: with the commit that it comes with, the last of each key, until its queue
// is configured no more.
func TestLearnedIsKept(t *testing.T) {
	t.Parallel()
	l := open(t)
	of := func(queue string, size, accelerators int, starts, returns time.Duration) admission.Learned {
		return admission.Learned{
			LearnedKey: admission.LearnedKey{Queue: queue, Kind: workload.KindRayJob, Size: size, Accelerators: accelerators},
			Starts:     admission.Mean{Count: 9, Mean: starts}, Returns: admission.Mean{Count: 8, Mean: returns},
		}
	}
	var queues []state.Queue
	for name, namespace := range map[string]string{"a": "a", "b": "b", "q": "ns"} {
		queues = append(queues, state.Queue{Name: name, Namespaces: []string{namespace}, Strategy: quota.BestEffortFIFO})
	}
	if err := l.SetQueues(t.Context(), l.term.Epoch, queues, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	first, second := admitted(1, "first", 1, 1, 100), admitted(2, "second", 1, 1, 100)
	first.Learned = []admission.Learned{of("a", 1, 0, time.Minute, time.Hour), of("a", 4, 0, time.Second+1, 0), of("a", 1, 10, time.Hour, 1), of("b", 1, 0, 2, 3)}
	second.Learned = []admission.Learned{of("a", 1, 0, time.Hour, time.Minute)}
	l.commit(t, first)
	l.commit(t, second)
	want := []admission.Learned{second.Learned[0], first.Learned[1], first.Learned[2], first.Learned[3]}
	compare := func(when string, want []admission.Learned) {
		t.Helper()
		stored, err := l.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		live, err := l.LiveState(t.Context(), 10, 10)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := l.Learned(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for who, got := range map[string][]admission.Learned{"a leader": stored.Learned, "an estimate": live.Learned, "a standby": alone} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s reads (-want +got):\n%s", when, who, diff)
			}
		}
	}
	compare("after two commits", want)
	queues = slices.DeleteFunc(queues, func(q state.Queue) bool { return q.Name == "b" })
	if err := l.SetQueues(t.Context(), l.term.Epoch, queues, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	compare("after the removal of a queue", want[:3])
}
