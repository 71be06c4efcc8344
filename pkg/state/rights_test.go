package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// A queue that lists its submitters takes work from these only, in their
// namespaces; and who waits when he is taken off the list has failed.
func TestSubmittersOfAQueue(t *testing.T) {
	t.Parallel()
	rules := workload.Rules{Submitters: []workload.Submitters{
		{Who: []string{"http/alice", "kubernetes/*/system:serviceaccount:team:*"}}, {Who: []string{"nats/b"}, Namespaces: []string{"shared"}},
	}}
	queue := Queue{Name: "q", Namespaces: []string{"ns", "shared"}, Rules: rules}
	s := New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{queue}})
	now := time.Unix(1_000_000, 0)
	submit := func(id, submitter, namespace string) *workload.Reason {
		s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: workload.ID(id), Queue: "q", Namespace: namespace, Kind: "RayCluster", Name: id, Submitter: submitter,
			PodSets: []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1}},
		}}, nil, now)
		for _, m := range s.Flush().Messages {
			if rejected, is := m.Payload.(*event.WorkloadRejected); is {
				return &rejected.Reason
			}
		}
		return nil
	}
	for _, c := range []struct {
		submitter, namespace string
		taken                bool
	}{
		{"http/alice", "", true}, {"http/alice", "shared", true}, {"kubernetes/east/system:serviceaccount:team:ci", "ns", true},
		{"nats/b", "shared", true}, {"nats/b", "ns", false}, {"nats", "shared", false}, {"http/mallory", "ns", false},
		{"kubernetes/east/system:serviceaccount:other:ci", "ns", false}, {"kubernetes/a/b/system:serviceaccount:team:ci", "ns", false}, {"", "ns", false},
	} {
		t.Run(c.submitter, func(t *testing.T) {
			reason := submit("w-"+strings.NewReplacer("/", "-", ":", "-").Replace(c.submitter+c.namespace), c.submitter, c.namespace)
			if (reason == nil) != c.taken {
				t.Errorf("%q in %q: %+v, want it taken: %t", c.submitter, c.namespace, reason, c.taken)
			}
			kind, words := workload.ReasonQueue, `queue "q" does not exist or does not admit this submitter`
			if c.submitter == "nats/b" { // who may use another namespace of it
				kind, words = workload.ReasonForbidden, `may not submit to queue "q" in namespace`
			}
			if reason != nil && (reason.Kind != kind || !strings.Contains(reason.Message, words)) {
				t.Errorf("%q in %q is refused for %+v", c.submitter, c.namespace, reason)
			}
		})
	}

	queue.Rules.Submitters = rules.Submitters[1:]
	s.ApplyConfiguration([]Queue{queue}, s.policy, s.Version()+1)
	s.CheckRights(now)
	failed, stay := 0, s.live.Len()
	for _, r := range s.Flush().Updated {
		if r.Phase == workload.Failed && r.Reason.Kind == workload.ReasonForbidden {
			failed++
		}
	}
	if failed != 3 || stay != 1 {
		t.Errorf("%d have failed and %d stay; want 3 and 1", failed, stay)
	}
	if s.Cancel(&event.WorkloadCancel{Workload: "w-nats-bshared", Submitter: "http/alice"}, now); s.live.Get("w-nats-bshared") == nil {
		t.Error("alice has cancelled what is not hers")
	}
}
