package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestATakenIDIsNamedAsItsSubmitterKnowsIt: who submits over HTTP has sent a key, and not a
// source and an id.
func TestATakenIDIsNamedAsItsSubmitterKnowsIt(t *testing.T) {
	t.Parallel()
	for submitter, want := range map[string]string{
		"http/alice": "the Idempotency-Key is taken by workload w (queued), which has other content; use a new key",
		"nats":       "source and id are taken by workload w (queued), which has other content; use a new id",
	} {
		t.Run(strings.ReplaceAll(submitter, "/", " "), func(t *testing.T) {
			t.Parallel()
			s := newTestState()
			submit := func(digest string) {
				s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
					ID: "w", Queue: "loose", Kind: "RayCluster", Name: "a", Digest: digest, Submitter: submitter, PodSets: []workload.PodSet{{Name: "head", Count: 1}},
				}}, nil, time.Unix(1_000_000, 0))
			}
			submit("one")
			submit("two")
			var said []string
			for _, e := range s.Flush().Messages {
				if rejected, is := e.Payload.(*event.WorkloadRejected); is {
					said = append(said, rejected.Reason.Message)
				}
			}
			if len(said) != 1 || said[0] != want {
				t.Errorf("it is refused with %q, want %q", said, want)
			}
		})
	}
}
