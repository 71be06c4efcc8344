package kubecontroller

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// Cluster is the API server: what the parts of the controller need of it, each beside its
// consumer. See Client for the meaning of each method.
type Cluster interface {
	accessReviews
	lifeWriter
	markWriter
	statusMirror
	uncached
	Object(key Key) *unstructured.Unstructured
}

// Messages is the bus and queue-manager.
type Messages interface {
	// Submit and Cancel return the sequence under which NATS has stored the message about the
	// object with that UID.
	Submit(ctx context.Context, queue, uid string, submitted *event.WorkloadSubmitted) (sequence uint64, err error)
	Cancel(ctx context.Context, queue, uid string, cancel *event.WorkloadCancel) (sequence uint64, err error)
	// Records queries queue-manager for mostAsked workloads at most; those that it does not have
	// are left out.
	Records(ctx context.Context, ids []workload.ID) ([]workload.Record, error)
}

// Options are the controller's settings.
type Options struct {
	// Cluster is the cluster's name in Muster.
	Cluster string
	// DefaultQueue is for AppWrappers without a queue label.
	DefaultQueue string
	// Queues are those to which objects of the cluster may be submitted; empty for all.
	Queues []string
	// Operator is the cluster's KubeRay.
	Operator ray.Operator
	// Budget bounds time and memory of reading an object.
	Budget *budget.Budget
	// RepeatAfter is the pause before an unanswered submission is first repeated; 0 is
	// two seconds.
	RepeatAfter time.Duration
	// Standings asks queue-manager where workloads that wait stand, and when they start; nil
	// for neither on objects.
	Standings func(ctx context.Context) (map[workload.ID]Standing, error)
	// Statuses asks queue-manager for the statuses of the objects in the place of those that move;
	// nil to mirror none.
	Statuses func(ctx context.Context, ids []workload.ID) ([]query.HomeStatus, error)
	// Placed asks queue-manager for the workloads with places whose objects are of the cluster and
	// move; nil to look for none whose object is gone.
	Placed func(ctx context.Context) ([]workload.Record, error)
	Logger *zap.Logger
}

const (
	workers    = 8
	markers    = 4 // workers that mark objects
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
	queue    workqueue.TypedRateLimitingInterface[Key] // of objects to reconcile
	marks    workqueue.TypedRateLimitingInterface[Key] // of objects to mark
	began    time.Time

	mu      sync.Mutex
	tracked map[workload.ID]*tracked
	// named has the workloads by the names of their objects; an object that was created again
	// has the name of the one before.
	named map[Key][]workload.ID
	// turns has by namespace when the last of its objects that wait may be marked.
	turns map[string]time.Time
}

// New returns a controller; it needs SetCluster before Run.
func New(o Options, messages Messages) *Controller {
	return &Controller{
		options: o, messages: messages, began: time.Now(), tracked: map[workload.ID]*tracked{}, named: map[Key][]workload.ID{}, turns: map[string]time.Time{}, queue: newWorkQueue(), marks: newWorkQueue(),
	}
}

func newWorkQueue() workqueue.TypedRateLimitingInterface[Key] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[Key](retryFirst, retryMost),
		workqueue.TypedRateLimitingQueueConfig[Key]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Queue: newFairQueue()}),
			}),
		})
}

// SetCluster sets the cluster, which calls Enqueue on changes.
func (c *Controller) SetCluster(cluster Cluster) { c.cluster = cluster }

// Enqueue adds an object to the work queue.
func (c *Controller) Enqueue(key Key) { c.queue.Add(key) }

// Run reconciles and marks objects until ctx ends. Marks have workers of their own, so that
// no submission or deletion waits for the marks of other objects.
func (c *Controller) Run(ctx context.Context) {
	var running sync.WaitGroup
	if c.options.Statuses != nil {
		running.Go(func() { c.keepStatuses(ctx) })
	}
	if c.options.Standings != nil {
		running.Go(func() { c.keepStandings(ctx) })
	}
	for _, of := range []struct {
		queue   workqueue.TypedRateLimitingInterface[Key]
		workers int
		do      func(context.Context, Key) (time.Duration, error)
	}{{c.queue, workers, c.reconcile}, {c.marks, markers, c.mark}} {
		context.AfterFunc(ctx, of.queue.ShutDown)
		for range of.workers {
			running.Go(func() {
				for c.next(ctx, of.queue, of.do) {
				}
			})
		}
	}
	running.Wait()
}

// next does the work for the next object of a queue; false means that the queue has ended.
func (c *Controller) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key], do func(context.Context, Key) (time.Duration, error)) bool {
	key, stopped := queue.Get()
	if stopped {
		return false
	}
	defer queue.Done(key)
	again, err := do(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.options.Logger.Warn("cannot reconcile an object; retrying", zap.Stringer("object", key), zap.Error(err))
		queue.AddRateLimited(key)
	default:
		queue.Forget(key)
		if again > 0 {
			queue.AddAfter(key, again)
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
	uid := string(object.GetUID())
	k := c.track(c.ID(uid), uid, key)
	if key.ray() {
		return c.reconcileRay(ctx, object, k)
	}
	return c.reconcileWrapper(ctx, object, k)
}

// removed cancels the workload of an object that was removed in spite of its finalizer, or that has
// lost its queue label, until queue-manager confirms it.
func (c *Controller) removed(ctx context.Context, key Key) (again time.Duration, err error) {
	c.mu.Lock()
	gone := slices.Clone(c.named[key])
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
		if err := c.letGo(ctx, key, k); err != nil {
			return 0, err
		}
		c.forget(id)
	}
	return again, nil
}
