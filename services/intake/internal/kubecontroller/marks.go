package kubecontroller

import (
	"context"
	"maps"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/spec/workload"
)

// markWriter is the API server, for what an object's mark consists of.
type markWriter interface {
	WriteStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error
	Annotate(ctx context.Context, object *unstructured.Unstructured, annotations map[string]string) error
	RecordEvent(ctx context.Context, object *unstructured.Unstructured, warning bool, reason, message string) error
}

// The mark of an object is what the controller writes on it: the status of an AppWrapper,
// the state and reason annotations of a Ray object. Marks may come late: a mark has what is
// known when it is written, so those that were skipped are not missed.
const (
	// settle is how long a workload is in a state that passes, such as queued, before its
	// object is marked with it: one that is admitted and starts at once costs no such marks.
	settle = time.Second
	// settleStart is settle of a Ray object whose workload has its places and is not running
	// yet. The release has marked it as admitted, and most are running before this is over.
	settleStart = 5 * time.Second
	// waitingEvery is the pause before an object that waits is marked with another reason.
	// A mark may come with an event, so it is two minutes for one write a minute.
	waitingEvery = 2 * time.Minute
	// sameEvery is the pause before an object in another state is marked with that state
	// again, such as with other numbers of pods.
	sameEvery = time.Second
	// turnEvery bounds the marks of the objects of a namespace that wait, to 50 a second;
	// turnsAtOnce of them may come at once. Namespaces do not wait for each other.
	turnEvery   = 20 * time.Millisecond
	turnsAtOnce = 50
	// spareTurns is of how many namespaces the last turn is kept before those that have
	// passed are dropped.
	spareTurns = 1000
)

// pace is when an object may be marked.
type pace struct {
	state  string    // of the workload
	since  time.Time // when this process saw it first
	marked string    // the state of the last mark that this process wrote
	next   time.Time // when a mark with the same state may follow
	turn   time.Time // of an object that waits, among those of its namespace; zero before it has one
}

// state returns what an object's mark is about; it is not known before queue-manager has
// answered.
func (k tracked) state() (state string, reason *workload.Reason, known bool) {
	switch {
	case k.rejected != nil:
		return "rejected", k.rejected, true
	case k.record != nil:
		return string(k.record.Phase), k.record.Reason, true
	}
	return "", nil, false
}

// askForMark has the object of a workload marked as soon as its pace allows.
func (c *Controller) askForMark(id workload.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.tracked[id]; k != nil {
		c.marks.AddAfter(k.key, k.untilMark(time.Now()))
	}
}

// untilMark returns how long the object must not be marked. A reason that warns counts as
// another state.
func (k *tracked) untilMark(now time.Time) time.Duration {
	state, reason, _ := k.state()
	if state == string(workload.Queued) && warns(state, reason) {
		state = "queued, warned"
	}
	p := &k.pace
	if p.state != state {
		p.state, p.since, p.turn = state, now, time.Time{}
	}
	earliest := now
	switch workload.Phase(state) {
	case workload.Queued:
		earliest = p.since.Add(settle)
	case workload.Admitted, workload.Dispatched:
		earliest = p.since.Add(settle)
		if k.key.ray() {
			earliest = p.since.Add(settleStart)
		}
	}
	if p.marked == state && p.next.After(earliest) {
		earliest = p.next
	}
	return max(earliest.Sub(now), 0)
}

// untilTurn returns how long the object of a workload that waits must not be marked because
// of the others in its namespace; zero if it may be marked now.
func (c *Controller) untilTurn(id workload.ID) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, now := c.tracked[id], time.Now()
	if k == nil || k.pace.state != string(workload.Queued) {
		return 0
	}
	if k.pace.turn.IsZero() {
		earliest := now.Add(-turnsAtOnce * turnEvery)
		if len(c.turns) >= spareTurns {
			maps.DeleteFunc(c.turns, func(_ string, last time.Time) bool { return last.Before(earliest) })
		}
		last := c.turns[k.key.Namespace]
		if last.Before(earliest) {
			last = earliest
		}
		k.pace.turn = last.Add(turnEvery)
		c.turns[k.key.Namespace] = k.pace.turn
	}
	return max(k.pace.turn.Sub(now), 0)
}

// noteMark keeps that the object was marked now.
func (c *Controller) noteMark(id workload.ID) {
	c.note(id, func(k *tracked) {
		pause := sameEvery
		if k.pace.state == string(workload.Queued) {
			pause = waitingEvery
		}
		k.pace.marked, k.pace.turn = k.pace.state, time.Time{}
		k.pace.next = time.Now().Add(pause + rand.N(pause/8))
	})
}

// mark writes on an object what is known of its workload, unless the object has it already.
// It returns after which time to try again, if it is too early.
func (c *Controller) mark(ctx context.Context, key Key) (again time.Duration, err error) {
	object := c.cluster.Object(key)
	if object == nil || object.GetDeletionTimestamp() != nil || !hasFinalizer(object) {
		return 0, nil
	}
	id := c.ID(string(object.GetUID()))
	c.mu.Lock()
	var k tracked
	if kept := c.tracked[id]; kept != nil {
		again = kept.untilMark(time.Now())
		k = *kept
	}
	c.mu.Unlock()
	switch {
	case again > 0 || k.key != key:
		return again, nil
	case key.ray():
		return c.markRay(ctx, object, id, k)
	}
	return c.markWrapper(ctx, object, id, k)
}

// markRay writes the state of the workload on a Ray object as annotations. The admission of
// an object comes with its release, which is the dispatcher's.
func (c *Controller) markRay(ctx context.Context, object *unstructured.Unstructured, id workload.ID, k tracked) (again time.Duration, err error) {
	phase, reason, known := k.state()
	if !known {
		return 0, nil
	}
	state, why := phase, ""
	if runs(phase) {
		state = kube.StateAdmitted
	}
	if reason != nil {
		why = reason.Message
	}
	annotations := object.GetAnnotations()
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend") // absent reads as false
	moves := movesAway(object)
	if moves && k.placed() {
		if err := c.mirror(ctx, object, id, k); err != nil {
			return 0, err
		}
	}
	releases := suspended && state == kube.StateAdmitted && why == "" && !moves
	news := !releases && (annotations[kube.StateKey] != state || annotations[kube.ReasonKey] != why)
	moved := k.otherNotes(annotations, moves)
	if news || !releases && len(moved) > 0 {
		if again := c.untilTurn(id); again > 0 {
			return again, nil
		}
		if moves && !k.placed() { // with its turn, and once for each wait
			if err := c.mirror(ctx, object, id, k); err != nil {
				return 0, err
			}
		}
		marks := map[string]string{kube.StateKey: state, kube.ReasonKey: why}
		maps.Copy(marks, moved)
		if err := c.cluster.Annotate(ctx, object, marks); err != nil {
			return 0, err
		}
		c.noteMark(id)
	}
	return 0, c.recordEvent(ctx, object, id, k, news)
}

// markWrapper writes the status of an AppWrapper.
func (c *Controller) markWrapper(ctx context.Context, object *unstructured.Unstructured, id workload.ID, k tracked) (again time.Duration, err error) {
	wrapper, refused, err := bounded(ctx, c.options.Budget, object, func(object *unstructured.Unstructured) (appwrapper.Wrapper, error) {
		return appwrapper.Read(c.options.Operator, object.Object)
	})
	if err != nil {
		return 0, err
	}
	if refused != nil {
		k.rejected = &workload.Reason{Kind: workload.ReasonInvalid, Message: refused.Error()}
	}
	old, _, _ := unstructured.NestedMap(object.Object, "status") // absent reads as empty
	if _, _, known := k.state(); !known || rejectedBefore(old) && refused == nil {
		return 0, nil
	}
	view := appwrapper.View{
		Created: object.GetCreationTimestamp().Time, Warnings: wrapper.Warnings, Pods: k.pods, Now: time.Now(),
		Rejected: k.rejected, Record: k.record,
	}
	status, changed := appwrapper.Status(wrapper.Version, old, view)
	if !changed {
		return 0, nil
	}
	if again := c.untilTurn(id); again > 0 {
		return again, nil
	}
	if old["phase"] == nil {
		for _, warning := range view.Warnings {
			if err := c.cluster.RecordEvent(ctx, object, true, "MusterWarning", warning); err != nil {
				return 0, err
			}
		}
	}
	// An earlier process may have recorded the event of what is on the object.
	news := k.lastEvent != "" || old["phase"] != status["phase"] || old["why"] != status["why"]
	if err := c.recordEvent(ctx, object, id, k, news); err != nil {
		return 0, err
	}
	if err := c.cluster.WriteStatus(ctx, object, status); err != nil {
		return 0, err
	}
	c.noteMark(id)
	return 0, nil
}
