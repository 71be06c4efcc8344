// Package kubecontroller is intake's Kubernetes controller: it submits the AppWrappers and
// the labelled Ray objects of a cluster as workloads, and writes their state back on the
// objects.
//
//	watch of the cluster --+
//	events of the bus -----+--> queue of keys --> reconcile --> finalizer
//	reconnection, retry ---+    (fairqueue.go)    one object --> submission, cancellation
//	                                                         --> status, annotations
//
// It is level-triggered and has no lasting state. The next step is a function of the object,
// of queue-manager's record of the workload, and of its observed pods. The workload's id
// derives from the object's UID. So the process may die at any point, and several may run:
//
//   - before it has set the finalizer it submits nothing;
//   - with the finalizer, a deleted object waits for the teardown of its workload;
//   - repeating a submission submits the same workload.
//
// It is not for reading AppWrappers (package appwrapper), nor for creating the wrapped
// objects (the dispatcher).
package kubecontroller

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// Cluster is the API server. See Client for the meaning of each.
type Cluster interface {
	Object(key Key) *unstructured.Unstructured
	SetFinalizer(ctx context.Context, object *unstructured.Unstructured, there bool) error
	WriteStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error
	Annotate(ctx context.Context, object *unstructured.Unstructured, annotations map[string]string) error
	RecordEvent(ctx context.Context, object *unstructured.Unstructured, warning bool, reason, message string) error
	Delete(ctx context.Context, object *unstructured.Unstructured) error
	Allowed(ctx context.Context, user bundle.Submitter, id bundle.Identity) (why string, err error)
	Stamps(ctx context.Context, policy string) (bool, error)
}

// Messages is the bus and queue-manager.
type Messages interface {
	// Submit and Cancel return the sequence under which NATS has stored the message.
	Submit(ctx context.Context, queue string, submitted *event.WorkloadSubmitted) (sequence uint64, err error)
	Cancel(ctx context.Context, queue string, cancel *event.WorkloadCancel) (sequence uint64, err error)
	// Record queries queue-manager; nil if it has no such workload.
	Record(ctx context.Context, id workload.ID) (*workload.Record, error)
}

// Options are the controller's settings.
type Options struct {
	// Cluster is the cluster's name in Muster.
	Cluster string
	// DefaultQueue takes AppWrappers without a queue label.
	DefaultQueue string
	// Operator is the cluster's KubeRay.
	Operator ray.Operator
	// Budget bounds time and memory of reading an object.
	Budget *budget.Budget
	// RepeatAfter is the pause before an unanswered submission is first repeated; 0 is
	// two seconds.
	RepeatAfter time.Duration
	Logger      *zap.Logger
}

const (
	workers    = 8
	retryFirst = 50 * time.Millisecond
	retryMost  = 30 * time.Second
	// queryAgainAfter is the pause before queue-manager is queried again for a workload that it
	// does not have yet, and the grace of a deletion that may have overtaken the
	// submission.
	queryAgainAfter = 2 * time.Second
	// repeatMost bounds the pause between repetitions: 10,000 unanswered objects make 42
	// a second.
	repeatMost = 4 * time.Minute
)

// Controller reconciles objects, each in one worker at a time.
type Controller struct {
	options  Options
	cluster  Cluster
	messages Messages
	queue    workqueue.TypedRateLimitingInterface[Key]

	mu      sync.Mutex
	tracked map[workload.ID]*tracked
}

// New returns a controller; it needs SetCluster before Run.
func New(o Options, messages Messages) *Controller {
	return &Controller{
		options: o, messages: messages, tracked: map[workload.ID]*tracked{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[Key](retryFirst, retryMost),
			workqueue.TypedRateLimitingQueueConfig[Key]{
				DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
					Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Queue: newFairQueue()}),
				}),
			}),
	}
}

// SetCluster sets the cluster, which calls Enqueue on changes.
func (c *Controller) SetCluster(cluster Cluster) { c.cluster = cluster }

// Enqueue adds an object to the work queue.
func (c *Controller) Enqueue(key Key) { c.queue.Add(key) }

// Run reconciles objects until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	context.AfterFunc(ctx, c.queue.ShutDown)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	running.Wait()
}

func (c *Controller) next(ctx context.Context) bool {
	key, stopped := c.queue.Get()
	if stopped {
		return false
	}
	defer c.queue.Done(key)
	again, err := c.reconcile(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.options.Logger.Warn("cannot reconcile an object; retrying", zap.Stringer("object", key), zap.Error(err))
		c.queue.AddRateLimited(key)
	default:
		c.queue.Forget(key)
		if again > 0 {
			c.queue.AddAfter(key, again)
		}
	}
	return true
}

// ID returns the workload id of an object. It includes the cluster's name, because UIDs
// are unique in one cluster only.
func (c *Controller) ID(uid string) workload.ID {
	return event.WorkloadID("kubernetes/"+c.options.Cluster, uid)
}

// reconcile takes the next step for an object.
func (c *Controller) reconcile(ctx context.Context, key Key) (time.Duration, error) {
	object := c.cluster.Object(key)
	if object == nil {
		return c.removed(ctx, key)
	}
	k := c.track(c.ID(string(object.GetUID())), key)
	if key.ray() {
		return c.reconcileRay(ctx, object, k)
	}
	return c.reconcileWrapper(ctx, object, k)
}

// removed cancels the workload of an object that was removed in spite of its finalizer,
// until queue-manager confirms it.
func (c *Controller) removed(ctx context.Context, key Key) (again time.Duration, err error) {
	c.mu.Lock()
	var gone []workload.ID
	for id, k := range c.tracked {
		if k.key == key {
			gone = append(gone, id)
		}
	}
	c.mu.Unlock()
	for _, id := range gone {
		c.mu.Lock()
		kept := c.tracked[id]
		if kept == nil {
			kept = &tracked{}
		}
		k := *kept
		c.mu.Unlock()
		how, after := cancelHeard, time.Duration(0)
		if k.queue != "" {
			if how, after, err = c.cancel(ctx, id, k.queue, key.String()+" is gone", &k); err != nil {
				return 0, err
			}
		}
		if how == cancelUnheard {
			again = max(again, after)
			continue
		}
		c.forget(id)
	}
	return again, nil
}

// lookUp completes k with queue-manager's record of the workload. It queries even after
// a rejection, which may be that of a second submission of a live workload.
func (c *Controller) lookUp(ctx context.Context, id workload.ID, k *tracked) error {
	if k.record != nil {
		return nil
	}
	record, err := c.messages.Record(ctx, id)
	if err != nil || record == nil {
		return err
	}
	k.record, k.rejected = record, nil
	c.note(id, func(kept *tracked) {
		if kept.record == nil {
			kept.record, kept.rejected, kept.submitted = record, nil, publication{}
		}
	})
	return nil
}

// submit publishes the workload, and repeats that until there is an answer: NATS may
// lose it before queue-manager reads it.
func (c *Controller) submit(ctx context.Context, submitted *event.WorkloadSubmitted, k *tracked) (time.Duration, error) {
	if left := time.Until(k.submitted.next); left > 0 {
		return left, nil
	}
	w := submitted.Workload
	sequence, err := c.messages.Submit(ctx, w.Queue, submitted)
	if err != nil {
		return 0, fmt.Errorf("submit %s %s/%s as workload %s: %w", w.Kind, w.Namespace, w.Name, w.ID, err)
	}
	k.submitted.recordPublication(sequence, cmp.Or(c.options.RepeatAfter, queryAgainAfter), repeatMost)
	c.note(w.ID, func(kept *tracked) { kept.submitted, kept.queue, kept.warned = k.submitted, w.Queue, true })
	c.options.Logger.Info("object submitted", zap.Int("try", k.submitted.times), zap.String("workload", string(w.ID)), zap.String("kind", w.Kind),
		zap.String("namespace", w.Namespace), zap.String("name", w.Name), zap.String("queue", w.Queue))
	return time.Until(k.submitted.next), nil
}
