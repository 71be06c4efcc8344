package decisionlog_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
)

// asking is a workload that waits, of which two operators ask one thing after the other. NATS
// numbers the requests, may deliver each again at any later time, and may lose its stream:
// numbers then begin again. Or its clock may be set back. Queue-manager may restart in between.
type asking struct {
	state    *state.State
	id       workload.ID
	at       time.Time
	sequence uint64
	clock    time.Time // of NATS
	past     []request
	stored   workload.Record
	asked    *workload.Asked // as stored
	// want is what the last request of each kind asks for, in the order of the stream.
	held     bool
	priority int32
	queue    string
}

type request struct {
	payload event.Request
	at      workload.AskedAt
}

func newAsking() *asking {
	a := &asking{id: "00000000-0000-4000-8000-000000000001", at: time.Unix(1000, 0).UTC(), clock: time.Unix(500, 0).UTC(), queue: "a"}
	gang := workload.Workload{
		ID: a.id, Queue: "a", Namespace: "n", Kind: workload.KindRayCluster, Name: "w",
		PodSets: []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}}},
	}
	a.load(workload.Record{Workload: gang, Phase: workload.Queued, Attempt: 1, Times: workload.Times{Submitted: a.at}})
	return a
}

func (a *asking) load(r workload.Record) {
	a.stored = r
	a.state = state.New(1, state.Stored{
		MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "a", Namespaces: []string{"n"}}, {Name: "b", Namespaces: []string{"n"}}},
		Workloads: []state.StoredWorkload{{Order: 1, Record: r, Asked: a.asked}},
	})
}

func (a *asking) deliver(r request) {
	a.at = a.at.Add(time.Second)
	decisionlog.ApplyMessage(a.state, event.Envelope{}, r.payload, decisionlog.Input{Asked: r.at, At: a.at})
}

// ask sends a new request, and delivers it.
func (a *asking) ask(t *rapid.T) {
	a.sequence++
	a.clock = a.clock.Add(time.Second)
	var p event.Request
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		a.held = rapid.Bool().Draw(t, "held")
		p = &event.WorkloadHold{Workload: a.id, Resume: !a.held, By: "ann"}
	case 1:
		a.priority = rapid.Int32Range(0, 3).Draw(t, "priority")
		p = &event.WorkloadPriority{Workload: a.id, Priority: a.priority, By: "bob"}
	default:
		a.queue = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
		p = &event.WorkloadMove{Workload: a.id, Queue: a.queue, By: "ann"}
	}
	r := request{p, workload.AskedAt{Sequence: a.sequence, Stored: a.clock}}
	a.past = append(a.past, r)
	a.deliver(r)
}

// record is the workload as it is stored.
func (a *asking) record(t *rapid.T) workload.Record {
	changes := a.state.Flush()
	for _, asked := range changes.Asked {
		a.asked = &asked.Asked
	}
	for _, w := range changes.Updated {
		encoded, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		a.stored = workload.Record{}
		if err := json.Unmarshal(encoded, &a.stored); err != nil {
			t.Fatal(err)
		}
	}
	return a.stored
}

// TestALaterRequestIsNotUndone: whatever is delivered again, the last request of each kind
// counts. A stream that is lost and a clock that is set back at the same time are left out:
// nothing distinguishes a new request from an old one then, until the clock is past the former time.
func TestALaterRequestIsNotUndone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := newAsking()
		mishap := rapid.SampledFrom([]string{"again", "new stream", "clock"}).Draw(t, "mishap")
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"ask", "ask", "again", "again", "restart", mishap}).Draw(t, "step") {
			case "ask":
				a.ask(t)
			case "again":
				if len(a.past) > 0 {
					a.deliver(rapid.SampledFrom(a.past).Draw(t, "request"))
				}
			case "restart":
				a.load(a.record(t))
			case "new stream": // it has nothing to deliver again
				a.sequence, a.past = 0, nil
			case "clock": // the messages before it have been settled
				a.clock, a.past = a.clock.Add(-time.Minute), nil
				a.sequence += 100
			}
			r := a.record(t)
			if (r.Hold != nil) != a.held || r.Priority != a.priority || r.Queue != a.queue {
				t.Fatalf("held %t, priority %d, queue %s; want %t, %d, %s", r.Hold != nil, r.Priority, r.Queue, a.held, a.priority, a.queue)
			}
		}
	})
}
