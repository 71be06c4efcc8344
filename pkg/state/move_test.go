package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// movable is a state with the queues from and to, and a workload that waits in from.
func movable(t *testing.T, to Queue) (*State, workload.ID, time.Time) {
	t.Helper()
	from := Queue{Name: "from", Namespaces: []string{"ns"}}
	st, now := New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{from, to}, Policy: quota.Config{Priorities: []quota.PriorityClass{{Name: "urgent", Value: 7000}}}}), time.Unix(1_000_000, 0)
	s := &event.WorkloadSubmitted{PriorityClass: "urgent", Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: event.WorkloadID("test", "1"), Queue: "from", Namespace: "ns", Kind: "RayCluster", Name: "n", Digest: "d", Submitter: "nats/alice",
		PodSets: []workload.PodSet{{Name: "head", Role: workload.RoleHead, Count: 2}},
	}}
	st.Submit(s, nil, now)
	st.Decide(now)
	st.Flush()
	if e := st.live.Get(s.Workload.ID); e == nil || e.Phase != workload.Queued {
		t.Fatalf("the workload is %+v", e)
	}
	return st, s.Workload.ID, now
}

// A workload that waits goes to another queue with its id and place; its history, and an
// event on the subjects of both queues, say who moved it.
func TestAWorkloadIsMoved(t *testing.T) {
	t.Parallel()
	st, id, now := movable(t, Queue{Name: "to", Namespaces: []string{"other", "ns"}})
	order := st.live.Get(id).order
	if !st.MoveToQueue(&event.WorkloadMove{Workload: id, Queue: "to", By: "bob@desk", Why: "Friday"}, now) {
		t.Fatal("the workload is not live")
	}
	st.Decide(now)
	e := st.live.Get(id)
	if e.Queue != "to" || e.order != order || st.liveIn["from"] != 0 || st.liveIn["to"] != 1 {
		t.Errorf("it is in queue %s with order %d, of %d; live in queues %v", e.Queue, e.order, order, st.liveIn)
	}
	if got := st.LiveByQueue(); got[LocalQueueKey{"ns", "to"}] != 1 || got[LocalQueueKey{"ns", "from"}] != 0 {
		t.Errorf("waiting by queue: %v", got)
	}
	changes := st.Flush()
	const want = `bob@desk moved it from queue "from" to queue "to": Friday`
	if len(changes.History) == 0 || changes.History[0].Reason.Message != want {
		t.Errorf("the history is %+v, want %q first", changes.History, want)
	}
	reasons := map[string]string{}
	for _, m := range changes.Messages {
		if changed, is := m.Payload.(*event.WorkloadChanged); is && reasons[m.Subject] == "" {
			reasons[m.Subject] = changed.Queue + ": " + changed.Reason.Message
		}
	}
	for _, queue := range []string{"from", "to"} {
		if got := reasons[event.EventsSubject(queue, id)]; got != "to: "+want {
			t.Errorf("the first event of queue %s says %q", queue, got)
		}
	}
	if len(changes.Updated) != 1 || changes.Updated[0].Queue != "to" {
		t.Errorf("stored is %+v", changes.Updated)
	}
}

// What the other queue does not allow stays where it is, and an event has the reason.
func TestARefusedMoveChangesNothing(t *testing.T) {
	t.Parallel()
	namespaces := []string{"ns"}
	for name, c := range map[string]struct {
		to   Queue
		move event.WorkloadMove
		want string
	}{
		"no such queue":           {Queue{Name: "else", Namespaces: namespaces}, event.WorkloadMove{}, `queue "to" does not exist`},
		"another namespace":       {Queue{Name: "to", Namespaces: []string{"other"}}, event.WorkloadMove{}, `namespace "ns" does not belong to queue "to"`},
		"not for its submitter":   {Queue{Name: "to", Namespaces: namespaces, Rules: workload.Rules{Submitters: []workload.Submitters{{Who: []string{"nats/bob"}}}}}, event.WorkloadMove{}, "does not admit its submitter"},
		"not for who asks":        {Queue{Name: "to", Namespaces: namespaces, Rules: workload.Rules{Submitters: []workload.Submitters{{Who: []string{"nats/*"}}}}}, event.WorkloadMove{Submitter: "http/alice"}, "does not admit"},
		"other rules for objects": {Queue{Name: "to", Namespaces: namespaces, Rules: workload.Rules{Objects: workload.ObjectPolicy{Kinds: []string{"ConfigMap"}}}}, event.WorkloadMove{}, "other rules"},
		"too large":               {Queue{Name: "to", Namespaces: namespaces, Rules: workload.Rules{Limits: workload.Limits{Pods: 1}}}, event.WorkloadMove{}, "allows a workload 1 at most"},
		"other graces":            {Queue{Name: "to", Namespaces: namespaces, Rules: workload.Rules{Limits: workload.Limits{CheckpointGrace: seconds(7)}}}, event.WorkloadMove{}, "other rules"},
		"other rules for pods":    {Queue{Name: "to", Namespaces: namespaces, Rules: workload.Rules{Pods: workload.PodPolicy{Mode: workload.PodsRestricted}}}, event.WorkloadMove{}, "other rules"},
		"full":                    {Queue{Name: "to", Namespaces: namespaces, Rules: workload.Rules{Limits: workload.Limits{Workloads: 1}}}, event.WorkloadMove{}, "is full"},
		"not of this class":       {Queue{Name: "to", Namespaces: namespaces, Rules: workload.Rules{Limits: workload.Limits{PriorityClasses: []string{"batch"}}}}, event.WorkloadMove{}, "priority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, id, now := movable(t, c.to)
			c.move.Workload, c.move.Queue, c.move.By = id, "to", "bob"
			st.liveIn["to"] = 1 // another one waits there
			st.MoveToQueue(&c.move, now)
			changes := st.Flush()
			if e := st.live.Get(id); e.Queue != "from" || len(changes.History) != 0 || len(changes.Updated) != 0 {
				t.Errorf("it is in queue %s; stored is %+v with the history %+v", e.Queue, changes.Updated, changes.History)
			}
			if len(changes.Messages) != 1 {
				t.Fatalf("messages are %+v, want one", changes.Messages)
			}
			changed, _ := changes.Messages[0].Payload.(*event.WorkloadChanged)
			if changed == nil || changed.Reason == nil || !strings.HasPrefix(changed.Reason.Message, event.NotMoved) || !strings.Contains(changed.Reason.Message, c.want) {
				t.Errorf("the event is %+v, want %q", changed, c.want)
			}
		})
	}
}

// Only what waits can be moved.
func TestARunningGangIsNotMoved(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.Flush()
	s.MoveToQueue(&event.WorkloadMove{Workload: gangID, Queue: "to", By: "bob"}, s.now)
	changed, _ := s.Flush().Messages[0].Payload.(*event.WorkloadChanged)
	if changed == nil || !strings.Contains(changed.Reason.Message, "it is running") || s.gang().Queue != "q" {
		t.Errorf("the event is %+v, its queue %s", changed, s.gang().Queue)
	}
}
