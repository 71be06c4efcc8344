package kubecontroller

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// tracked is the state of a workload whose object exists.
type tracked struct {
	key      Key
	uid      string // of the object
	queue    string
	record   *workload.Record
	rejected *workload.Reason
	pods     appwrapper.Counts
	// submitted and cancelled are the messages that this controller has published
	// without an answer so far.
	submitted, cancelled publication
	// submittedBefore: queue-manager may have it.
	submittedBefore bool
	// missed counts the answers of queue-manager that it has no such workload.
	missed int
	// warned is whether its warnings were recorded as events.
	warned bool
	// lastEvent identifies the last recorded event, so that it is not repeated; unannounced
	// is whether the event of its admission is to come.
	lastEvent   string
	unannounced bool
	pace        pace
	// standing is of one that waits.
	standing Standing
	// mirrored is what is known of the object in the place of one that moves.
	mirrored mirrored
	// forbidden is whether intake may not write the object, of which an event tells.
	forbidden bool
	// freed is whether the finalizer was removed from the object, which is being deleted.
	freed bool
}

func (c *Controller) forget(id workload.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.tracked[id]
	if k == nil {
		return
	}
	delete(c.tracked, id)
	others := slices.DeleteFunc(c.named[k.key], func(other workload.ID) bool { return other == id })
	if c.named[k.key] = others; len(others) == 0 {
		delete(c.named, k.key)
	}
}

func (c *Controller) track(id workload.ID, uid string, key Key) tracked {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.tracked[id]
	if k == nil {
		k = &tracked{key: key, uid: uid}
		c.tracked[id] = k
		c.named[key] = append(c.named[key], id)
	}
	return *k
}

// Tracks reports whether the workload has an object that the controller knows.
func (c *Controller) Tracks(id workload.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tracked[id] != nil
}

func (c *Controller) note(id workload.ID, change func(*tracked)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.tracked[id]; k != nil {
		change(k)
	}
}

// Changed applies a new state of a workload.
func (c *Controller) Changed(e *event.WorkloadChanged) {
	c.heard(e.ID, func(k *tracked) {
		record := e.Record
		if event.IsRefusal(record.Reason) {
			record.Reason = nil
			if k.record != nil {
				record.Reason = k.record.Reason
			}
		}
		k.learn(&record)
	})
}

// learn takes in the present record of the workload.
func (k *tracked) learn(record *workload.Record) {
	if record.Phase != workload.Queued || k.record != nil && k.record.Attempt != record.Attempt {
		k.standing = Standing{} // of a wait that is over
	}
	k.record, k.rejected, k.submitted, k.submittedBefore = record, nil, publication{}, true
	if !k.placed() {
		k.mirrored.heard, k.mirrored.stale = time.Time{}, time.Time{} // nothing is asked about
	}
	k.unannounced = k.unannounced || record.Phase == workload.Queued
}

// Rejected records that a submission was refused. If the workload has a record, the
// refused submission was a second one and changes nothing.
func (c *Controller) Rejected(e *event.WorkloadRejected) {
	c.heard(e.Workload, func(k *tracked) {
		if k.record == nil {
			reason := e.Reason
			k.rejected = &reason
		}
	})
}

// Gang applies the observed pods of a workload.
func (c *Controller) Gang(e *event.GangObserved) {
	counts := appwrapper.Counts{}
	for _, pod := range e.Pods {
		switch pod.Phase {
		case "Running":
			counts.Running++
		case "Succeeded":
			counts.Succeeded++
		case "Failed":
			counts.Failed++
		default:
			counts.Pending++
		}
	}
	c.heard(e.Workload, func(k *tracked) { k.pods = counts })
}

func (c *Controller) heard(id workload.ID, change func(*tracked)) {
	c.mu.Lock()
	k := c.tracked[id]
	if k != nil {
		change(k)
	}
	c.mu.Unlock()
	if k != nil {
		c.queue.Add(k.key)
	}
}
