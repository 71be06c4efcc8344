// Package door is intake's door to Kubernetes: it submits the AppWrappers and the
// held Ray objects of a cluster as workloads, and writes what becomes of them back
// on them.
//
// It is level-triggered and keeps nothing: an event of the cluster or of the bus,
// a reconnection and its own retry all lead to the same look at one object, and
// what it does is a function of the object, of what queue-manager says of the
// workload, and of what is seen of its pods. The workload's id is made of the
// object's UID. So it may die at any point, and there may be several:
//
//   - before the finalizer is there nothing is submitted;
//   - after it, an object that is deleted waits for its workload to be torn down;
//   - after a submission that nobody remembers, submitting again is the same
//     workload.
//
// It is not for reading AppWrappers (package appwrapper) nor for creating what
// they wrap (the dispatcher).
package door

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/pkg/appwrapper"
	"muster.dev/muster/pkg/bundle"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// Cluster is the API server. See Client for the meaning of each.
type Cluster interface {
	Object(key Key) *unstructured.Unstructured
	SetFinalizer(ctx context.Context, object *unstructured.Unstructured, there bool) error
	WriteStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error
	Annotate(ctx context.Context, object *unstructured.Unstructured, annotations map[string]string) error
	Tell(ctx context.Context, object *unstructured.Unstructured, warning bool, reason, message string) error
	Delete(ctx context.Context, object *unstructured.Unstructured) error
	Allowed(ctx context.Context, user bundle.Submitter, id bundle.Identity) (why string, err error)
	Stamps(ctx context.Context, policy string) (bool, error)
}

// Messages is the bus and queue-manager.
type Messages interface {
	Submit(ctx context.Context, queue string, submitted *event.WorkloadSubmitted) error
	Cancel(ctx context.Context, queue string, cancel *event.WorkloadCancel) error
	// Record asks queue-manager; nil when it has no such workload.
	Record(ctx context.Context, id workload.ID) (*workload.Record, error)
}

// Options are the door's settings.
type Options struct {
	// Cluster is what Muster calls the cluster.
	Cluster string
	// DefaultQueue takes AppWrappers without a queue label.
	DefaultQueue string
	// Operator is the cluster's KubeRay.
	Operator ray.Operator
	// Budget bounds what reading an object may take.
	Budget *budget.Budget
	Logger *zap.Logger
}

const (
	workers    = 8
	retryFirst = 50 * time.Millisecond
	retryMost  = 30 * time.Second
	// askAgain is when a submission is looked for that queue-manager does not
	// have yet, and the grace of a deletion that may have overtaken it.
	askAgain = 2 * time.Second
	// repeatMost bounds the pauses between repetitions of what has no answer: with
	// 10,000 objects there are 42 in a second.
	repeatMost = 4 * time.Minute
)

// Door looks at objects, each by one worker at a time.
type Door struct {
	options  Options
	cluster  Cluster
	messages Messages
	queue    workqueue.TypedRateLimitingInterface[Key]

	mu    sync.Mutex
	known map[workload.ID]*known
}

// known is what has been heard of a workload whose object has been seen.
type known struct {
	key      Key
	queue    string
	record   *workload.Record
	rejected *workload.Reason
	pods     appwrapper.Counts
	// submitted and cancelled are what this door has published of it that was not
	// answered so far.
	submitted, cancelled repeated
	// missed counts how often queue-manager has said since that it has none.
	missed int
	// warned is whether its warnings were told.
	warned bool
	// told is what the object was told last, so that events are not repeated.
	told string
}

// New returns a door. SetCluster gives it its cluster before Run.
func New(o Options, messages Messages) *Door {
	return &Door{
		options: o, messages: messages, known: map[workload.ID]*known{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[Key](retryFirst, retryMost)),
	}
}

// SetCluster gives the door its cluster, which tells it of changes.
func (d *Door) SetCluster(c Cluster) { d.cluster = c }

// Look has an object looked at.
func (d *Door) Look(key Key) { d.queue.Add(key) }

// Run looks at objects until ctx ends.
func (d *Door) Run(ctx context.Context) {
	context.AfterFunc(ctx, d.queue.ShutDown)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for d.next(ctx) {
			}
		})
	}
	running.Wait()
}

func (d *Door) next(ctx context.Context) bool {
	key, stopped := d.queue.Get()
	if stopped {
		return false
	}
	defer d.queue.Done(key)
	again, err := d.look(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.options.Logger.Warn("object will be looked at again", zap.Stringer("object", key), zap.Error(err))
		d.queue.AddRateLimited(key)
	default:
		d.queue.Forget(key)
		if again > 0 {
			d.queue.AddAfter(key, again)
		}
	}
	return true
}

// ID is the workload of an object. The cluster's name is in it: UIDs are unique
// in one cluster.
func (d *Door) ID(uid string) workload.ID {
	return event.WorkloadID("kubernetes/"+d.options.Cluster, uid)
}

// look does the next step for an object.
func (d *Door) look(ctx context.Context, key Key) (time.Duration, error) {
	object := d.cluster.Object(key)
	if object == nil {
		return d.vanished(ctx, key)
	}
	k := d.knownOf(d.ID(string(object.GetUID())), key)
	if key.ray() {
		return d.lookRay(ctx, object, k)
	}
	return d.lookWrapper(ctx, object, k)
}

// vanished cancels the workload of an object that was removed past its finalizer,
// until queue-manager has heard it.
func (d *Door) vanished(ctx context.Context, key Key) (again time.Duration, err error) {
	d.mu.Lock()
	var gone []workload.ID
	for id, k := range d.known {
		if k.key == key {
			gone = append(gone, id)
		}
	}
	d.mu.Unlock()
	for _, id := range gone {
		d.mu.Lock()
		kept := d.known[id]
		if kept == nil {
			kept = &known{}
		}
		k := *kept
		d.mu.Unlock()
		how, after := cancelHeard, time.Duration(0)
		if k.queue != "" {
			if how, after, err = d.cancel(ctx, id, k.queue, key.String()+" is gone", &k); err != nil {
				return 0, err
			}
		}
		if how == cancelUnheard {
			again = max(again, after)
			continue
		}
		d.forget(id)
	}
	return again, nil
}

func (d *Door) forget(id workload.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, id)
}

func (d *Door) knownOf(id workload.ID, key Key) known {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.known[id]
	if k == nil {
		k = &known{key: key}
		d.known[id] = k
	}
	return *k
}

func (d *Door) note(id workload.ID, change func(*known)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.known[id]; k != nil {
		change(k)
	}
}

// Changed takes in what queue-manager says of a workload.
func (d *Door) Changed(e *event.WorkloadChanged) {
	d.heard(e.ID, func(k *known) { record := e.Record; k.record, k.rejected, k.submitted = &record, nil, repeated{} })
}

// Rejected takes in that a submission was refused. That of a workload that is known
// was a second one, which changes nothing for the first.
func (d *Door) Rejected(e *event.WorkloadRejected) {
	d.heard(e.Workload, func(k *known) {
		if k.record == nil {
			reason := e.Reason
			k.rejected = &reason
		}
	})
}

// Gang takes in what is seen of the pods of a workload.
func (d *Door) Gang(e *event.GangObserved) {
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
	d.heard(e.Workload, func(k *known) { k.pods = counts })
}

func (d *Door) heard(id workload.ID, change func(*known)) {
	d.mu.Lock()
	k := d.known[id]
	if k != nil {
		change(k)
	}
	d.mu.Unlock()
	if k != nil {
		d.queue.Add(k.key)
	}
}

// LookAtAll has every object looked at, and queue-manager asked anew: events may
// have been missed.
func (d *Door) LookAtAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.known {
		if k.rejected == nil {
			k.record = nil
		}
		d.queue.Add(k.key)
	}
}

// fate finds out what became of a workload: what was heard, or what
// queue-manager answers. A rejection alone proves nothing: it may be of a second
// submission of a workload that lives.
func (d *Door) fate(ctx context.Context, id workload.ID, k *known) error {
	if k.record != nil {
		return nil
	}
	record, err := d.messages.Record(ctx, id)
	if err != nil || record == nil {
		return err
	}
	k.record, k.rejected = record, nil
	d.note(id, func(kept *known) {
		if kept.record == nil {
			kept.record, kept.rejected, kept.submitted = record, nil, repeated{}
		}
	})
	return nil
}

// submit publishes the workload, and again while there is no answer: NATS may have
// lost it before queue-manager took it.
func (d *Door) submit(ctx context.Context, submitted *event.WorkloadSubmitted, k *known) (time.Duration, error) {
	if left := time.Until(k.submitted.next); left > 0 {
		return left, nil
	}
	w := submitted.Workload
	if err := d.messages.Submit(ctx, w.Queue, submitted); err != nil {
		return 0, fmt.Errorf("submit %s %s/%s as workload %s: %w", w.Kind, w.Namespace, w.Name, w.ID, err)
	}
	k.submitted.again(repeatMost)
	d.note(w.ID, func(kept *known) { kept.submitted, kept.queue, kept.warned = k.submitted, w.Queue, true })
	d.options.Logger.Info("object submitted", zap.Int("time", k.submitted.times), zap.String("workload", string(w.ID)), zap.String("kind", w.Kind),
		zap.String("namespace", w.Namespace), zap.String("name", w.Name), zap.String("queue", w.Queue))
	return time.Until(k.submitted.next), nil
}
