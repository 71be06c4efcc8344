package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
)

// What operators and submitters asked of workloads in the lost time - to hold, resume, move
// or requeue them, or to change their priority - is applied once more where NATS still has
// the requests. Where it does not, the last event of a workload shows what was in effect.

// restoredBy is who asks for what an event shows.
const restoredBy = "the recovery of a restored database"

// unknownFor is how long before an event a request may be stored that the event does not know
// yet. A request that is older than that, and not in the event, was refused then.
const unknownFor = 10 * time.Second

// requests are when NATS stored the last request of each type, by workload, of those that are
// applied once more.
type requests map[workload.ID]map[string]time.Time

func (r requests) note(p event.Request, stored time.Time) {
	if r[p.About()] == nil {
		r[p.About()] = map[string]time.Time{}
	}
	r[p.About()][p.EventType()] = stored
}

// follow reports whether a request of the type of p may count after an event of its workload.
func (r requests) follow(p event.Request, at time.Time) bool {
	return r[p.About()][p.EventType()].After(at.Add(-unknownFor))
}

// Unasked is a workload of which something was asked in the lost time, which is not in effect.
type Unasked struct {
	Lost
	// Lacks is what.
	Lacks string
}

// askAgain asks for what the last events show to have been in effect and is not, and returns
// what is refused.
func (r Recovery) askAgain(ctx context.Context) (unasked []Unasked, err error) {
	var batch []bus.Delivery
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		applied := batch
		batch = nil
		if _, err := r.Step.applyBatch(ctx, applied, r.Now); err != nil { // there is nothing to settle
			return err
		}
		return r.Save(applied)
	}
	for _, last := range r.Found.LastEvents {
		for _, p := range r.lacking(last) {
			d, err := r.asRequest(last, p)
			if err != nil {
				return nil, err
			}
			batch = append(batch, d)
		}
		if len(batch) >= recoverBatch {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	for _, last := range r.Found.LastEvents {
		if lacks := r.lacking(last); len(lacks) > 0 {
			unasked = append(unasked, Unasked{Lost{last.Record, last.Delivery}, inWords(lacks, last.Record)})
		}
	}
	return unasked, nil
}

// lacking is what has to be asked of a live workload for it to be as its last event shows.
func (r Recovery) lacking(last relay.LastEvent) (lacks []event.Request) {
	now, live := r.Step.State.Record(last.ID)
	if !live || last.Phase.Final() || now.CancelRequested || now.Phase.Final() {
		return nil
	}
	if last.CancelRequested { // nothing else counts any more
		return []event.Request{&event.WorkloadCancel{Workload: last.ID, Why: "by " + restoredBy}}
	}
	add := func(differs bool, p event.Request) {
		if differs && !r.asked.follow(p, last.Delivery.Stored) {
			lacks = append(lacks, p)
		}
	}
	hold := &event.WorkloadHold{Workload: last.ID, Resume: last.Hold == nil, By: restoredBy}
	if last.Hold != nil {
		hold.By, hold.Why = cmp.Or(last.Hold.By, restoredBy), last.Hold.Why
		if last.Hold.Own {
			hold.Submitter = now.Submitter
		}
	}
	add((last.Hold == nil) != (now.Hold == nil), hold)
	add(last.Priority != now.Priority, &event.WorkloadPriority{Workload: last.ID, Priority: last.Priority, By: restoredBy})
	add(last.Queue != now.Queue, &event.WorkloadMove{Workload: last.ID, Queue: last.Queue, By: restoredBy})
	add(lacksRequeue(last, now), &event.WorkloadRequeue{Workload: last.ID, Attempt: now.Attempt, By: restoredBy})
	return lacks
}

// lacksRequeue reports whether an attempt is up that an event shows to be requeued. During the
// grace of an eviction the command shows nothing of it: its object is still to be there.
func lacksRequeue(last relay.LastEvent, now workload.Record) bool {
	up := now.Phase == workload.Admitted || now.Phase == workload.Dispatched || now.Phase == workload.Running
	return up && last.Requeued == now.Attempt
}

// asRequest is a request as a message. It has no place in a stream, so that it overtakes none.
func (r Recovery) asRequest(last relay.LastEvent, p event.Request) (bus.Delivery, error) {
	id := fmt.Sprintf("queue-manager/restored/%s/%s", last.Delivery.MessageID(), p.EventType())
	data, err := event.Marshal(id, event.QueueManagerSource, r.Now, "", p)
	if err != nil {
		return bus.Delivery{}, fmt.Errorf("ask workload %s for what was in effect: %w", last.ID, err)
	}
	return bus.Delivery{Subject: event.WorkloadSubject(last.Queue), Data: data, Stored: r.Now}, nil
}

// inWords returns what requests ask for.
func inWords(lacks []event.Request, last workload.Record) string {
	var all []string
	for _, p := range lacks {
		switch p := p.(type) {
		case *event.WorkloadHold:
			what := "resumed"
			if last.Hold != nil {
				what = last.Hold.Message()
			}
			all = append(all, what)
		case *event.WorkloadPriority:
			all = append(all, fmt.Sprintf("given priority %d", p.Priority))
		case *event.WorkloadCancel:
			all = append(all, "cancelled")
		case *event.WorkloadRequeue:
			all = append(all, fmt.Sprintf("requeued in attempt %d", p.Attempt))
		case *event.WorkloadMove:
			all = append(all, fmt.Sprintf("moved to queue %q", p.Queue))
		}
	}
	return strings.Join(all, ", and ")
}
