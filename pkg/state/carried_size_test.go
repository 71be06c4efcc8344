package state

import (
	"encoding/json"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// A workload is accepted if its command is small enough also when its queue carries as many objects
// as one may, by the time the workload starts.
func TestRoomForCarriedObjectsIsReserved(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	for carries := range workload.MostCarried + 1 {
		var rules workload.Rules
		for range carries {
			rules.Carries = append(rules.Carries, workload.Carried{Kind: workload.KindConfigMap, Name: "c", From: "east"})
		}
		largest := 0
		for pods := range 40 {
			s := New(1, Stored{MaxEvent: 30_000, Queues: []Queue{{Name: "q", Namespaces: []string{"q"}, Rules: rules}}})
			s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
				ID: "w", Queue: "q", Kind: "RayCluster", Name: "a", PodSets: []workload.PodSet{{Name: "workers", Count: pods}},
			}}, nil, now)
			if s.live.Get("w") != nil {
				largest = pods
			}
		}
		if want := (30_000 - 4<<10 - 2<<10 - 2*len(`{}`) - workload.MostCarried*400) / 480; largest != want {
			t.Errorf("of a queue that carries %d objects the largest gang has %d pods, want %d", carries, largest, want)
		}
	}
}
