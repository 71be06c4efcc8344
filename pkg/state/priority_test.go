package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Warnings come with the event that takes a workload in, and with no other.
func TestWarningsComeOnce(t *testing.T) {
	t.Parallel()
	st, now := New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{{Name: "q", Namespaces: []string{"q"}}}}), time.Unix(1_000_000, 0)
	s := &event.WorkloadSubmitted{Warnings: []string{"does nothing"}, Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: event.WorkloadID("test", "1"), Queue: "q", Kind: "RayCluster", Name: "n", Digest: "d",
		PodSets: []workload.PodSet{{Name: "head", Role: workload.RoleHead, Count: 1}},
	}}
	st.Submit(s, nil, now)
	st.Submit(s, nil, now)
	st.Cancel(&event.WorkloadCancel{Workload: s.Workload.ID}, now)
	warned := []int{}
	for _, message := range st.Flush().Messages {
		if changed, is := message.Payload.(*event.WorkloadChanged); is {
			warned = append(warned, len(changed.Warnings))
		}
	}
	if len(warned) != 3 || warned[0] != 1 || warned[1] != 0 || warned[2] != 0 {
		t.Errorf("events have %v warnings, want 1 in the first of 3", warned)
	}
}

// A class gives its value at submission. What is no class is refused, with those
// there are. A policy without the class changes nothing of who is in already.
func TestAPriorityClassIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	queues, now := []Queue{{Name: "q", Namespaces: []string{"q"}}}, time.Unix(1_000_000, 0)
	policy := quota.Config{Priorities: []quota.PriorityClass{{Name: "urgent", Value: 100}, {Name: "batch", Value: -5}}}
	st := New(1, Stored{MaxEvent: 1 << 20, Queues: queues, Policy: policy})
	submission := func(name, class string) *event.WorkloadSubmitted {
		return &event.WorkloadSubmitted{PriorityClass: class, Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: event.WorkloadID("test", name), Queue: "q", Kind: "RayCluster", Name: name, Digest: "d",
			PodSets: []workload.PodSet{{Name: "head", Role: workload.RoleHead, Count: 1}},
		}}
	}
	refusal := func(st *State) *workload.Reason {
		for _, message := range st.Flush().Messages {
			if rejected, is := message.Payload.(*event.WorkloadRejected); is {
				return &rejected.Reason
			}
		}
		return nil
	}
	for class, want := range map[string]int32{"": 0, "urgent": 100, "batch": -5} {
		t.Run(fmt.Sprintf("class %q", class), func(t *testing.T) {
			s := submission("of-"+class, class)
			st.Submit(s, nil, now)
			if live := st.live.Get(s.Workload.ID); live == nil || live.Priority != want {
				t.Errorf("class %q gives %+v, want priority %d", class, live, want)
			}
		})
	}
	st.Flush()
	unknown := submission("unknown", "urgnt")
	st.Submit(unknown, nil, now)
	if why := refusal(st); why == nil || why.Kind != workload.ReasonInvalid ||
		!strings.Contains(why.Message, `priority class "urgnt" does not exist; there are: batch, urgent`) {
		t.Errorf("an unknown class is answered %+v", why)
	}
	again := submission("of-urgent", "urgent")
	stored := StoredWorkload{Order: 1, Record: st.live.Get(again.Workload.ID).Record}
	without := New(2, Stored{MaxEvent: 1 << 20, Queues: queues, Workloads: []StoredWorkload{stored}})
	without.Submit(again, nil, now)
	if why := refusal(without); why != nil || without.live.Get(again.Workload.ID).Priority != 100 {
		t.Errorf("sent again when the class is gone: refused %+v, priority %d", why, without.live.Get(again.Workload.ID).Priority)
	}
	without.Submit(unknown, nil, now)
	if why := refusal(without); why == nil || !strings.Contains(why.Message, "there are none") {
		t.Errorf("without any class the answer is %+v", why)
	}
}
