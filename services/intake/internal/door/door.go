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
	// submitted is when this door published it last.
	submitted time.Time
	// missed counts how often queue-manager has said since that it has none.
	missed int
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
		return 0, d.vanished(ctx, key)
	}
	k := d.knownOf(d.ID(string(object.GetUID())), key)
	if key.ray() {
		return d.lookRay(ctx, object, k)
	}
	return d.lookWrapper(ctx, object, k)
}

// vanished cancels the workload of an object that somebody has removed past its
// finalizer.
func (d *Door) vanished(ctx context.Context, key Key) error {
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
		k := d.known[id]
		live := k != nil && k.queue != "" && (k.record == nil || !k.record.Phase.Final())
		d.mu.Unlock()
		if live {
			if err := d.messages.Cancel(ctx, k.queue, &event.WorkloadCancel{Workload: id, Why: key.String() + " is gone"}); err != nil {
				return err
			}
		}
		d.mu.Lock()
		delete(d.known, id)
		d.mu.Unlock()
	}
	return nil
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
	d.heard(e.ID, func(k *known) { record := e.Record; k.record, k.rejected = &record, nil })
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
			kept.record, kept.rejected = record, nil
		}
	})
	return nil
}

// submit publishes the workload, unless that was done a moment ago.
func (d *Door) submit(ctx context.Context, submitted *event.WorkloadSubmitted, k *known) (time.Duration, error) {
	if time.Since(k.submitted) < askAgain {
		return askAgain, nil
	}
	w := submitted.Workload
	if err := d.messages.Submit(ctx, w.Queue, submitted); err != nil {
		return 0, fmt.Errorf("submit %s %s/%s as workload %s: %w", w.Kind, w.Namespace, w.Name, w.ID, err)
	}
	d.note(w.ID, func(kept *known) { kept.submitted, kept.queue = time.Now(), w.Queue })
	d.options.Logger.Info("object submitted", zap.String("workload", string(w.ID)), zap.String("kind", w.Kind),
		zap.String("namespace", w.Namespace), zap.String("name", w.Name), zap.String("queue", w.Queue))
	return askAgain, nil
}

// maxMissed is how often queue-manager may not know a workload that is being
// deleted, before it is taken as never submitted.
const maxMissed = 3

// leaving cancels the workload of an object that is being deleted. It returns
// true when nothing of the workload is left.
func (d *Door) leaving(ctx context.Context, id workload.ID, queue string, k *known) (gone bool, again time.Duration, err error) {
	if err := d.fate(ctx, id, k); err != nil {
		return false, 0, err
	}
	switch r := k.record; {
	case k.rejected != nil:
		return true, 0, nil
	case r != nil && r.Phase.Final() && !r.Holding:
		return true, 0, nil
	case r != nil && r.CancelRequested:
		return false, 0, nil // its end will be heard of
	case r == nil && k.missed >= maxMissed:
		return true, 0, nil
	case r == nil:
		d.note(id, func(kept *known) { kept.missed++ })
	default:
		queue = r.Queue
	}
	err = d.messages.Cancel(ctx, queue, &event.WorkloadCancel{Workload: id, Why: k.key.String() + " was deleted"})
	return false, askAgain, err
}
