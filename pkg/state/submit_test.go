package state

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
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
			var got []string
			for _, e := range s.Flush().Messages {
				if rejected, is := e.Payload.(*event.WorkloadRejected); is {
					got = append(got, rejected.Reason.Message)
				}
			}
			if len(got) != 1 || got[0] != want {
				t.Errorf("it is refused with %q, want %q", got, want)
			}
		})
	}
}

// A submission without a namespace to queues of one name with quotas of their own is refused,
// unless its submitter may use one of them only, or all lead to the same ClusterQueue.
func TestASubmissionToOneOfSeveralQueuesNamesIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue, namespace, submitter string
		want                        string // its namespace; empty when it is refused
	}{
		"several quotas":            {"user-queue", "", "", ""},
		"one of them":               {"user-queue", "team-b", "", "team-b"},
		"one quota":                 {"shared", "", "", "team-a"},
		"only one may be submitted": {"user-queue", "", "http/alice", "team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := workload.Rules{}
			if c.submitter != "" {
				rules.Submitters = []workload.Submitters{{Who: []string{c.submitter}, Namespaces: []string{"team-a"}}}
			}
			s := New(1, Stored{
				MaxEvent: 1 << 20,
				Queues: []Queue{
					{Name: "user-queue", Namespaces: []string{"team-a", "team-b"}, Rules: rules}, {Name: "shared", Namespaces: []string{"team-a", "team-b"}},
				},
				Policy: quota.Config{
					ClusterQueues: []quota.ClusterQueue{{Name: "cq-a"}, {Name: "cq-b"}},
					LocalQueues: []quota.LocalQueue{
						{Namespace: "team-a", Name: "user-queue", ClusterQueue: "cq-a"}, {Namespace: "team-b", Name: "user-queue", ClusterQueue: "cq-b"},
						{Namespace: "team-a", Name: "shared", ClusterQueue: "cq-a"}, {Namespace: "team-b", Name: "shared", ClusterQueue: "cq-a"},
					},
				},
			})
			s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
				ID: "w", Queue: c.queue, Namespace: c.namespace, Kind: "RayCluster", Name: "a", Submitter: c.submitter, PodSets: []workload.PodSet{{Name: "head", Count: 1}},
			}}, nil, time.Unix(1_000_000, 0))
			namespace, refusal := "", ""
			for _, m := range s.Flush().Messages {
				switch e := m.Payload.(type) {
				case *event.WorkloadChanged:
					namespace = e.Namespace
				case *event.WorkloadRejected:
					refusal = e.Reason.Message
				}
			}
			if namespace != c.want || (refusal != "") != (c.want == "") || refusal != "" && !strings.Contains(refusal, "namespaces team-a, team-b") {
				t.Errorf("it is in namespace %q, or refused with %q; want %q", namespace, refusal, c.want)
			}
		})
	}
}

// Objects of one name that users made with kubectl in two clusters are two workloads. What Muster
// creates may be in any cluster, so its name is taken in all.
func TestANameIsTakenWhereItsObjectMayBe(t *testing.T) {
	t.Parallel()
	const east, west, anywhere = "kubernetes/east/ana", "kubernetes/west/ana", "nats/ana"
	for name, c := range map[string]struct {
		first, second string
		refused       bool
	}{
		"two clusters":              {east, west, false},
		"one cluster":               {east, east, true},
		"first made with kubectl":   {east, anywhere, true},
		"first created by Muster":   {anywhere, west, true},
		"both are created by it":    {anywhere, anywhere, true},
		"two users of two clusters": {east, "kubernetes/west/bob", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, now := newTestState(), time.Unix(1_000_000, 0)
			submitNamed(s, "first", c.first, now)
			submitNamed(s, "second", c.second, now)
			var refused []workload.ReasonKind
			for _, e := range s.Flush().Messages {
				if rejected, is := e.Payload.(*event.WorkloadRejected); is {
					refused = append(refused, rejected.Reason.Kind)
				}
			}
			if c.refused != (len(refused) == 1 && refused[0] == workload.ReasonDuplicate) || !c.refused && len(refused) > 0 {
				t.Errorf("refused are %v, want one as a duplicate: %t", refused, c.refused)
			}
			if s.live.Get("second") == nil != c.refused {
				t.Errorf("the second is live: %t", s.live.Get("second") != nil)
			}
		})
	}
}

// An object moves only where its queue says so, and only one that a user made with kubectl.
func TestWhatMayMove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, submitter, rule string
		want                  workload.ReasonKind // empty when it is accepted
	}{
		"a RayCluster":              {workload.KindRayCluster, "kubernetes/east/ana", workload.MoveFromHome, ""},
		"a RayJob":                  {workload.KindRayJob, "kubernetes/east/ana", workload.MoveFromHome, ""},
		"of a queue that waits":     {workload.KindRayJob, "kubernetes/east/ana", workload.WaitAtHome, workload.ReasonQueue},
		"of a queue without a rule": {workload.KindRayJob, "kubernetes/east/ana", "", workload.ReasonQueue},
		"an AppWrapper":             {workload.KindAppWrapper, "kubernetes/east/ana", workload.MoveFromHome, workload.ReasonInvalid},
		"over NATS":                 {workload.KindRayJob, "nats/ana", workload.MoveFromHome, workload.ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, now := newTestState(), time.Unix(1_000_000, 0)
			queue := s.queues["loose"]
			queue.Rules.HomeObjects = c.rule
			s.queues["loose"] = queue
			s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
				ID: "first", Queue: "loose", Namespace: "loose", Kind: c.kind, Name: "a", Digest: "d", Submitter: c.submitter,
				PodSets: []workload.PodSet{{Name: "head", Count: 1}}, Life: workload.Life{Moves: true},
			}}, nil, now)
			var refused workload.ReasonKind
			for _, e := range s.Flush().Messages {
				if rejected, is := e.Payload.(*event.WorkloadRejected); is {
					refused = rejected.Reason.Kind
				}
			}
			live := s.live.Get("first")
			if refused != c.want || (live != nil) != (c.want == "") {
				t.Fatalf("refused because of %q, want %q; live is %+v", refused, c.want, live)
			}
			if live == nil {
				return
			}
			live.Cluster = "west"
			command := s.command(live, event.Present)
			if command.Home != "east" || command.Name != "a-first" || !slices.Equal(command.PodPolicy.ServiceAccounts, []string{"default"}) {
				t.Errorf("the command has home %q, name %q and service accounts %q", command.Home, command.Name, command.PodPolicy.ServiceAccounts)
			}
		})
	}
}

// submitNamed submits a workload whose object has the name "a".
func submitNamed(s *State, id workload.ID, submitter string, now time.Time) {
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: id, Queue: "loose", Namespace: "loose", Kind: "RayCluster", Name: "a", Digest: string(id), Submitter: submitter, PodSets: []workload.PodSet{{Name: "head", Count: 1}},
	}}, nil, now)
}
