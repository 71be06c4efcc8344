// Package world plays the world around queue-manager in memory: submitters,
// the capacity-watchers and the dispatchers, on a clock that moves when it is
// told to. The decisions and the rules of a workload's life are the real ones:
// it drives package state, as queue-manager does, and keeps none of its own.
//
// It serves scenarios and simulations. It reads no clock and has no effects; the
// same calls give the same steps. It is not for testing the services themselves,
// whose messages may come twice, late or never.
package world

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Options is how a simulation begins.
type Options struct {
	Start  time.Time
	Queues []state.Queue
	Policy quota.Config // valid
	// NodeGrace is how long a node may be not ready before gangs on it are
	// evicted.
	NodeGrace time.Duration
	// Nodes and Running are there from the beginning, as if an earlier leader had
	// left them: Running are records of workloads that hold their placements, Waiting
	// those that are queued, in the order of their submission. What becomes of Waiting at
	// once is in the steps of the next call.
	Nodes            []capacity.Node
	Running, Waiting []workload.Record
	PastUsage        []quota.PastUsage
	// Learned is what was learned of the cost of evictions.
	Learned []admission.Learned
	// Linger keeps pods that shall go until Gone says that they went.
	Linger bool
	// Victims is the order in which gangs are evicted.
	Victims admission.VictimOrder
}

// Step is one step in the life of a workload.
type Step struct {
	At time.Time
	workload.Record
}

// World is a played world. It is not safe for concurrent use.
type World struct {
	state     *state.State
	now       time.Time
	nodeGrace time.Duration
	linger    bool
	version   uint64
	records   map[workload.ID]*workload.Record
	steps     []Step
}

// maxEvent bounds messages as a NATS server with its default settings does.
const maxEvent = 1 << 20

// epoch of the only term there is.
const epoch = 1

// New begins a simulation.
func New(o Options) *World {
	r := &World{now: o.Start, nodeGrace: o.NodeGrace, linger: o.Linger, records: map[workload.ID]*workload.Record{}}
	stored := state.Stored{Queues: o.Queues, Policy: o.Policy, PastUsage: o.PastUsage, Learned: o.Learned, MaxEvent: maxEvent, NoCertificates: true, Victims: o.Victims}
	for _, n := range o.Nodes {
		stored.Nodes = append(stored.Nodes, state.StoredNode{Node: n, Version: r.next(), Present: true})
	}
	for _, record := range slices.Concat(o.Running, o.Waiting) {
		stored.LastOrder++
		stored.Workloads = append(stored.Workloads, state.StoredWorkload{Record: record, Order: stored.LastOrder})
		r.records[record.ID] = &record
	}
	r.state = state.New(epoch, stored)
	for i := range o.Running {
		record := &o.Running[i]
		r.state.Gang(&event.GangObserved{
			Version: r.next(), Cluster: record.Cluster, Workload: record.ID,
			Pods: podsOf(record.PodSets, record.Placements, record.Attempt),
		}, r.now, r.now)
	}
	waiting := map[workload.ID]bool{}
	for _, record := range o.Waiting {
		waiting[record.ID] = true
	}
	r.steps = slices.DeleteFunc(r.settle(), func(step Step) bool { return !waiting[step.ID] }) // the others are no news
	return r
}

// Now is the simulated time.
func (r *World) Now() time.Time { return r.now }

// Record returns the present state of a workload that was accepted.
func (r *World) Record(id workload.ID) (workload.Record, bool) {
	record, known := r.records[id]
	if !known {
		return workload.Record{}, false
	}
	return *record, true
}

// Explain returns why a workload waits, and the smallest changes that would admit it.
func (r *World) Explain(id workload.ID) (workload.Explanation, error) {
	return r.state.Explain(id, r.now)
}

// Certify proves that a waiting workload fits nowhere, or returns why there is no proof.
func (r *World) Certify(id workload.ID) (*certificate.Document, string) { return r.state.Certify(id) }

// Present returns, of workloads that lack quota or places, why that is so now.
// Their records have the reason of the last look at them.
func (r *World) Present(of ...workload.ID) map[workload.ID]*workload.Reason {
	return r.state.Present(r.now, of...)
}

// Forget drops what is known of a workload, so that a long simulation does not
// keep all that ended.
func (r *World) Forget(id workload.ID) { delete(r.records, id) }

// SetNode adds a node or replaces what is observed of it.
func (r *World) SetNode(n capacity.Node) []Step {
	r.state.Node(&event.NodeObserved{Version: r.next(), Node: n}, r.now)
	return r.settle()
}

// RemoveNode removes a node.
func (r *World) RemoveNode(cluster, name string) []Step {
	r.state.NodeRemoved(&event.NodeRemoved{Version: r.next(), Cluster: cluster, Node: name}, r.now)
	return r.settle()
}

// Submit submits a workload, of the priority class of that name if there is one. A
// refusal is an error that has its reason.
func (r *World) Submit(w workload.Workload, priorityClass string) ([]Step, error) {
	r.state.Submit(&event.WorkloadSubmitted{Workload: w, PriorityClass: priorityClass, Manifest: json.RawMessage("{}")}, nil, r.now)
	changes := r.state.Flush()
	for _, message := range changes.Messages {
		if refused, is := message.Payload.(*event.WorkloadRejected); is {
			return nil, fmt.Errorf("%s: %s", refused.Reason.Kind, refused.Reason.Message)
		}
	}
	r.note(changes)
	return r.settle(), nil
}

// Cancel asks to end a workload for good.
func (r *World) Cancel(id workload.ID, why string) ([]Step, error) {
	if !r.state.Cancel(&event.WorkloadCancel{Workload: id, Why: why}, r.now) {
		return nil, fmt.Errorf("workload %s is not live", id)
	}
	return r.settle(), nil
}

// Request applies what was requested of a workload, other than its submission or its end.
func (r *World) Request(p event.Payload) []Step {
	switch p := p.(type) {
	case *event.WorkloadCancel:
		r.state.Cancel(p, r.now)
	case *event.WorkloadMove:
		r.state.MoveToQueue(p, r.now)
	case *event.WorkloadHold:
		r.state.Hold(p, r.now)
	case *event.WorkloadRequeue:
		r.state.Requeue(p, r.now)
	case *event.WorkloadPriority:
		r.state.SetPriority(p, r.now)
	case *event.WorkloadCheckpoint:
		r.state.Checkpoint(p, r.now)
	}
	return r.settle()
}

// Checkpoint says that a started workload has saved its work.
func (r *World) Checkpoint(id workload.ID) ([]Step, error) {
	record, known := r.records[id]
	if !known || !record.Holding || record.Phase.Final() {
		return nil, fmt.Errorf("workload %s has not been started", id)
	}
	return r.Request(&event.WorkloadCheckpoint{Workload: id, At: r.now, By: "the played world"}), nil
}

// Configure gives queues and a policy, which are valid, in the place of the present ones.
func (r *World) Configure(queues []state.Queue, policy quota.Config) []Step {
	r.state.ApplyConfiguration(queues, policy, r.state.Version())
	return r.settle()
}

// End lets the job of a started workload end, and its pods go.
func (r *World) End(id workload.ID, outcome string) ([]Step, error) {
	record, known := r.records[id]
	if !known || !record.Holding || record.Phase.Final() {
		return nil, fmt.Errorf("workload %s has not been started", id)
	}
	status := r.statusOf(record)
	status.Outcome, status.Message = outcome, "job "+outcome
	r.state.Status(status, r.now, r.now)
	r.settleMessages()
	if !r.linger {
		r.release(id)
	}
	return r.settle(), nil
}

// Gone reports that the pods of a workload have been seen gone.
func (r *World) Gone(id workload.ID) ([]Step, error) {
	record, known := r.records[id]
	if !known || !record.Holding {
		return nil, fmt.Errorf("workload %s has no pods", id)
	}
	r.release(id)
	return r.settle(), nil
}

// LosePod removes the last pod of a started workload. Nothing replaces it.
func (r *World) LosePod(id workload.ID) ([]Step, error) {
	record, known := r.records[id]
	if !known || !record.Holding || record.Phase.Final() {
		return nil, fmt.Errorf("workload %s has not been started", id)
	}
	pods := podsOf(record.PodSets, record.Placements, record.Attempt)
	r.state.Gang(&event.GangObserved{Version: r.next(), Cluster: record.Cluster, Workload: id, Pods: pods[:len(pods)-1]}, r.now, r.now)
	return r.settle(), nil
}

// Advance lets time pass. Every second, and every minute of what is beyond two
// hours, queue-manager looks whether time alone has changed anything.
func (r *World) Advance(to time.Time) []Step {
	const fine = 2 * time.Hour
	for r.now.Before(to) {
		stride := time.Second
		if to.Sub(r.now) > fine {
			stride = time.Minute
		}
		r.now = r.now.Add(min(stride, to.Sub(r.now)))
		r.state.Tick(r.now, r.nodeGrace)
		r.settleMessages()
	}
	return r.settle()
}

// Refresh has reasons brought up to date that changed in amounts only, which
// queue-manager does once a second.
func (r *World) Refresh() []Step {
	r.state.Tick(r.now, r.nodeGrace)
	return r.settle()
}

// Jump moves the clock without looking at what time alone changes. The next
// event decides on the new time.
func (r *World) Jump(to time.Time) { r.now = to }

func (r *World) next() event.Version {
	r.version++
	return event.Version{Session: 1, Seq: r.version}
}
