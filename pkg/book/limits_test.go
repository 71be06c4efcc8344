package book

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// One queue is full: it is said so, another queue goes on, the same submission is
// taken when there is room, and who is in already is told so.
func TestAFullQueueRefusesUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	b, now := newBook(), time.Unix(1_000_000, 0)
	b.SetLimits(Limits{Live: 4, InQueue: 2})
	submit := func(queue string, n int) *workload.Reason {
		t.Helper()
		w := workload.Workload{
			ID: event.WorkloadID(queue, fmt.Sprint(n)), Queue: queue, Kind: "RayCluster", Name: fmt.Sprint(n), Digest: "d",
			PodSets: []workload.PodSet{{Name: "head", Role: workload.RoleHead, Count: 1}},
		}
		b.Submit(&event.WorkloadSubmitted{Workload: w, Manifest: json.RawMessage(`{}`)}, nil, now)
		messages := b.Take().Messages
		if rejected, ok := messages[len(messages)-1].Payload.(*event.WorkloadRejected); ok {
			return &rejected.Reason
		}
		return nil
	}
	for n := range 2 {
		if why := submit("loose", n); why != nil {
			t.Fatalf("workload %d was refused: %v", n, why)
		}
	}
	if why := submit("loose", 2); why == nil || why.Kind != workload.ReasonFull {
		t.Errorf("beyond the limit the answer is %v, want Full", why)
	}
	if why := submit("loose", 1); why != nil {
		t.Errorf("one that is in already was refused: %v", why)
	}
	if why := submit("strict", 0); why != nil {
		t.Errorf("another queue was refused: %v", why)
	}
	b.Cancel(&event.WorkloadCancel{Workload: event.WorkloadID("loose", "0")}, now)
	if why := submit("loose", 2); why != nil {
		t.Errorf("with room again the answer is %v", why)
	}
}
