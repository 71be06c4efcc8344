package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestFormerIDs: a submission whose id an earlier version made in another way is the
// same workload when it comes again, and not one of another submitter.
func TestFormerIDs(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	of := func(id workload.ID, submitter string) *event.WorkloadSubmitted {
		return &event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: id, Queue: "q", Kind: "RayCluster", Name: string(id), Digest: "d", Submitter: submitter,
			PodSets: []workload.PodSet{{Name: "head", Role: workload.RoleHead, Count: 1}},
		}}
	}
	former := event.WorkloadID("laptop", "nightly")
	id := event.SubmissionID("tenant-a", "laptop", "nightly")
	again := of(id, "nats/tenant-a")
	again.Former = former
	for name, c := range map[string]struct {
		live   string // who submitted the live workload under the former id; empty for none
		stored *Known
		taken  bool
	}{
		"live":                   {"nats/tenant-a", nil, false},
		"ended":                  {"", &Known{Digest: "d", Phase: workload.Succeeded, Submitter: "nats/tenant-a", Former: former}, false},
		"unknown":                {"", nil, true},
		"live, of another":       {"nats", nil, true},
		"known under its own id": {"", &Known{Digest: "d", Phase: workload.Succeeded, Submitter: "nats/tenant-a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{{Name: "q", Namespaces: []string{"q"}}}})
			if c.live != "" {
				s.Submit(of(former, c.live), nil, now)
			}
			s.Submit(again, c.stored, now)
			if got := s.live.Get(id) != nil; got != c.taken {
				t.Errorf("taken in: %v, want %v", got, c.taken)
			}
			for _, message := range s.Flush().Messages {
				rejected, is := message.Payload.(*event.WorkloadRejected)
				if is && (c.taken || !strings.Contains(rejected.Reason.Message, string(former))) {
					t.Errorf("rejected: %s", rejected.Reason.Message)
				}
			}
		})
	}
}

// TestEndedWorkloadsAreAnswered: the same submission again, of a workload that has
// ended and is forgotten, gets its end.
func TestEndedWorkloadsAreAnswered(t *testing.T) {
	t.Parallel()
	s := New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{{Name: "q", Namespaces: []string{"q"}}}})
	w := workload.Workload{ID: event.WorkloadID("laptop", "1"), Queue: "q", Digest: "d"}
	s.Submit(&event.WorkloadSubmitted{Workload: w, Manifest: json.RawMessage(`{}`)},
		&Known{Digest: "d", Phase: workload.Succeeded, Record: &workload.Record{Workload: w, Phase: workload.Succeeded}}, time.Unix(1_000_000, 0))
	messages := s.Flush().Messages
	if len(messages) != 1 {
		t.Fatalf("%d messages, want the answer", len(messages))
	}
	if changed, is := messages[0].Payload.(*event.WorkloadChanged); !is || changed.Phase != workload.Succeeded {
		t.Errorf("answered with %+v", messages[0].Payload)
	}
}
