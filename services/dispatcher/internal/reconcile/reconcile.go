// Package reconcile makes true what queue-manager wants: it compares, workload
// by workload, what shall be with what is, does the next step, and reports.
//
// It is level-triggered. A command, a change in Kubernetes, a reconnection or
// its own retry all lead to the same look at one workload, and looking twice
// does nothing twice. It remembers only what it reported last, which it reads
// back from the bus at its start; so it may die at any point:
//
//   - before an object is created: the next look creates it;
//   - after it was created, before that was reported: creating it again is
//     answered with AlreadyExists, and an object with our workload and attempt is
//     ours. Only if somebody also deletes it in that moment is it created twice;
//   - between two pods being pinned: the pinned keep their places, the next look
//     pins the others;
//   - after a deletion: the next look finds nothing and reports that.
//
// It touches no object without the workload's own label.
package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/pkg/bundle"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Cluster is the API server. See kubernetes.Client for the meaning of each.
type Cluster interface {
	Create(ctx context.Context, kind, namespace string, manifest json.RawMessage) (uid string, err error)
	Get(ctx context.Context, kind, namespace, name string) (*kubernetes.Object, error)
	Delete(ctx context.Context, object kubernetes.Object) error
	DeletePod(ctx context.Context, pod gang.Pod, force bool) error
	Announce(ctx context.Context, object kubernetes.Object, at time.Time) error
	Remaining(ctx context.Context, id workload.ID, namespace string) (kubernetes.Left, error)
	Pin(ctx context.Context, pin gang.Pin) error
	OrphanedPods(ctx context.Context, id workload.ID, pods []gang.Pod) ([]gang.Pod, error)
	Items
	Release(ctx context.Context, kind, uid string, manifest json.RawMessage) (done bool, err error)
}

// Cache is what has been seen of the API server.
type Cache interface {
	Object(kind, namespace, name string) *kubernetes.Object
	Pods(id workload.ID) []gang.Pod
	Objects() []kubernetes.Object
	Workloads() []workload.ID
	Clusters(id workload.ID) []kubernetes.Object
	RayClusters(objects []string) []string
	Made(owners []string) []gang.Pod
}

// Reporter tells queue-manager a status and returns when it is stored. The
// status of a workload that is done with is kept for a while only.
type Reporter func(ctx context.Context, status event.GangStatus, keep time.Duration) error

// forgottenKept is how long a forgotten workload is remembered, and its last
// status kept: a command that comes late must not bring it back.
const forgottenKept = time.Hour

const (
	// pollAfter is the look that stands behind a missed change.
	pollAfter = 2 * time.Second
	// Retries of what failed begin at retryFirst and double up to retryMost.
	retryFirst = 20 * time.Millisecond
	retryMost  = 10 * time.Second
)

// Reconciler works on workloads, each by one worker at a time.
type Reconciler struct {
	cluster Cluster
	cache   Cache
	report  Reporter
	logger  *zap.Logger
	metrics *Metrics
	tracer  tracing.Tracer
	queue   Schedule
	lanes   *lanes // the order in queue
	now     func() time.Time
	atOnce  int // writes of one look on their way

	mu        sync.Mutex
	traced    map[workload.ID]string // the context of the last command; empty where nothing is traced
	desired   map[workload.ID]*event.GangDesired
	forgotten map[workload.ID]time.Time // since when desired is Forgotten
	reported  map[workload.ID]event.GangStatus
	repeat    map[workload.ID]bool              // to be reported although it is no news
	sent      map[workload.ID]map[string]string // hostname by UID of pods that the cache shows gated yet
	removed   map[workload.ID]removal
	tried     map[workload.ID]removal           // since when the attempt is tried
	items     map[workload.ID][]bundle.Identity // of bundles
	rollback  map[workload.ID]rollback          // bundles of which an object was refused
	asked     map[workload.ID]string            // the questions that wait for an answer
	again     again
	unplanned map[workload.ID]unplanned
	// doubted are commands to start of which queue-manager did not know when it was
	// asked last; doubtedTo is the last workload that it was asked for.
	doubted   map[workload.ID]*event.GangDesired
	doubtedTo workload.ID
}

// Schedule is which workload is looked at next, and when: a work queue.
type Schedule = workqueue.TypedRateLimitingInterface[workload.ID]

// New returns a reconciler. reported is what earlier dispatchers told last.
func New(cluster Cluster, report Reporter, reported map[workload.ID]event.GangStatus, logger *zap.Logger, metrics *Metrics) *Reconciler {
	order := newLanes()
	r := newReconciler(cluster, report, reported, logger, metrics)
	r.lanes, r.now, r.atOnce = order, time.Now, pinsAtOnce
	r.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[workload.ID](retryFirst, retryMost),
		workqueue.TypedRateLimitingQueueConfig[workload.ID]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[workload.ID]{
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[workload.ID]{Queue: order}),
			}),
		})
	return r
}

func newReconciler(cluster Cluster, report Reporter, reported map[workload.ID]event.GangStatus, logger *zap.Logger, metrics *Metrics) *Reconciler {
	return &Reconciler{
		cluster: cluster, report: report, logger: logger, metrics: metrics,
		traced: map[workload.ID]string{}, desired: map[workload.ID]*event.GangDesired{}, forgotten: map[workload.ID]time.Time{}, reported: reported,
		repeat: map[workload.ID]bool{}, sent: map[workload.ID]map[string]string{}, removed: map[workload.ID]removal{}, tried: map[workload.ID]removal{},
		items: map[workload.ID][]bundle.Identity{}, rollback: map[workload.ID]rollback{}, unplanned: map[workload.ID]unplanned{},
		asked:   map[workload.ID]string{},
		doubted: map[workload.ID]*event.GangDesired{},
	}
}

// SetCache gives the reconciler its eyes, before Run and Sweep. They come after
// New, because they tell it of changes.
func (r *Reconciler) SetCache(cache Cache) { r.cache = cache }

// Run looks at workloads with so many workers until ctx ends.
func (r *Reconciler) Run(ctx context.Context, workers int) {
	context.AfterFunc(ctx, r.queue.ShutDown)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for r.next(ctx) {
			}
		})
	}
	running.Wait()
}

// Look has a workload looked at.
func (r *Reconciler) Look(id workload.ID) { r.queue.Add(id) }

const (
	// largeGang is from how many pods on a gang is not looked at for each change.
	largeGang = 64
	// perPod is how long, per pod, changes of a large gang are gathered before it is
	// looked at: a look goes through all pods, and while they are made, sent and
	// bound each of them changes several times. For 512 pods it is 51 ms.
	perPod = 100 * time.Microsecond
)

// Changed has a workload looked at of which something has changed in Kubernetes.
func (r *Reconciler) Changed(id workload.ID) {
	r.mu.Lock()
	command, pods := r.desired[id], 0
	if command != nil {
		for _, p := range command.Placements {
			pods += p.Pods
		}
	}
	r.mu.Unlock()
	if pods < largeGang {
		r.queue.Add(id)
		return
	}
	r.queue.AddAfter(id, time.Duration(pods)*perPod) // the first of them counts
}

// Command takes in what shall be. An older leader's is refused.
func (r *Reconciler) Command(command *event.GangDesired) {
	r.mu.Lock()
	known := r.desired[command.Workload]
	newer := gang.Newer(command, known)
	if newer {
		r.desired[command.Workload] = command
		told := r.reported[command.Workload]
		r.lanes.setNew(command.Workload, command.State == event.Present && (told.Attempt != command.Attempt || !told.Created))
		delete(r.doubted, command.Workload)
		delete(r.forgotten, command.Workload)
		if command.State == event.Forgotten {
			r.forgotten[command.Workload] = r.now()
		}
	}
	r.mu.Unlock()
	if !newer {
		r.logger.Warn("command refused: it is older than what is known",
			zap.String("workload", string(command.Workload)), zap.Int("attempt", command.Attempt),
			zap.Int64("epoch", command.Epoch), zap.Int64("known epoch", known.Epoch))
		return
	}
	r.Look(command.Workload)
}

func (r *Reconciler) next(ctx context.Context) bool {
	id, stopped := r.queue.Get()
	if stopped {
		return false
	}
	defer r.queue.Done(id)
	again, err := r.look(ctx, id)
	if err == nil {
		err = r.answer(ctx, id)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.metrics.failures.Inc()
		r.logger.Warn("workload will be tried again", zap.String("workload", string(id)), zap.Error(err))
		r.queue.AddRateLimited(id)
	default:
		r.queue.Forget(id)
		if again > 0 {
			r.queue.AddAfter(id, again)
		}
	}
	return true
}

// look does the next step for a workload and returns when to look again at the
// latest; zero means when something changes.
func (r *Reconciler) look(ctx context.Context, id workload.ID) (again time.Duration, err error) {
	r.mu.Lock()
	command := r.desired[id]
	status := r.reported[id]
	repeat := r.repeat[id]
	r.mu.Unlock()
	if command == nil {
		return 0, nil // unknown; Sweep cares for what is left of it
	}
	if command.State == event.Forgotten {
		return 0, r.forget(ctx, id)
	}
	if repeat {
		if err := r.tell(ctx, status); err != nil {
			return 0, err
		}
	}
	if status.Attempt != command.Attempt || status.Cluster != command.Cluster {
		status = event.GangStatus{Workload: id, Cluster: command.Cluster, Attempt: command.Attempt}
	}
	status.Epoch = command.Epoch
	status.Created = status.Created || command.Created
	switch command.State {
	case event.Absent, event.Ended:
		again, err := r.takeDown(ctx, command, status)
		return r.inTime(ctx, command, r.removing(command), again, err)
	}
	if isBundle(command) {
		return r.lookBundle(ctx, command, status)
	}
	return r.ensure(ctx, command, status)
}

// takeDown does the next step towards nothing being left of a workload.
func (r *Reconciler) takeDown(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	switch {
	case isBundle(command):
		return r.takeDownBundle(ctx, command, status)
	case command.State == event.Absent:
		return r.remove(ctx, command, status)
	}
	return r.shutDown(ctx, command, status)
}

// tell reports a status if it says something new.
func (r *Reconciler) tell(ctx context.Context, status event.GangStatus) error {
	r.mu.Lock()
	old, told := r.reported[status.Workload]
	repeat := r.repeat[status.Workload]
	r.mu.Unlock()
	old.Epoch, old.Session, old.Answers = status.Epoch, status.Session, "" // epochs alone are no news
	status.Answers = ""
	if told && reflect.DeepEqual(old, status) && !repeat {
		return nil
	}
	if err := r.report(ctx, status, 0); err != nil {
		return fmt.Errorf("report status of workload %s: %w", status.Workload, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.desired[status.Workload] != nil {
		r.reported[status.Workload] = status
		if status.Created || status.Refused || status.Gone {
			r.lanes.setNew(status.Workload, false)
		}
		delete(r.repeat, status.Workload)
	}
	return nil
}

// forget lets the last status of a workload expire and drops what is remembered
// of it, but for the command.
func (r *Reconciler) forget(ctx context.Context, id workload.ID) error {
	r.mu.Lock()
	status, told := r.reported[id]
	delete(r.reported, id)
	delete(r.repeat, id)
	delete(r.sent, id)
	delete(r.removed, id)
	delete(r.tried, id)
	delete(r.items, id)
	delete(r.rollback, id)
	delete(r.unplanned, id)
	delete(r.traced, id)
	delete(r.asked, id)
	r.mu.Unlock()
	if !told {
		return nil
	}
	if err := r.report(ctx, status, forgottenKept); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reported[id] = status // for the next try
		return fmt.Errorf("report last status of workload %s: %w", id, err)
	}
	return nil
}

// remove deletes the workload's object and reports when nothing is left.
func (r *Reconciler) remove(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	object := r.cache.Object(command.Kind, command.Namespace, command.Name)
	if object == nil || object.Workload != command.Workload {
		var err error
		if object, err = r.cluster.Get(ctx, command.Kind, command.Namespace, command.Name); err != nil {
			return 0, err
		}
	}
	// One that is held and has no label of ours any more has been taken back.
	if object == nil || object.Workload != command.Workload && (object.Held || !isCreated(object, status)) {
		status.Gone = true
		return r.awaitRemoval(ctx, command, status)
	}
	if object.Attempt > command.Attempt {
		return r.outdated(ctx, command, status, object)
	}
	if !object.Deleting {
		if err := r.cluster.Delete(ctx, *object); err != nil {
			return 0, err
		}
		r.logger.Info("object deleted", zap.String("workload", string(command.Workload)), zap.Int("attempt", command.Attempt),
			zap.String("kind", command.Kind), zap.String("namespace", command.Namespace), zap.String("name", command.Name))
	}
	// Its disappearance will be seen.
	return pollAfter, errors.Join(r.reap(ctx, command), r.pinCleanup(ctx, command))
}

// outdated leaves an object of a later attempt alone: the command is not the last one,
// whatever the stream says. Unless the object is older than the command: then Postgres
// came back as of before that attempt, and queue-manager is told of it.
func (r *Reconciler) outdated(ctx context.Context, command *event.GangDesired, status event.GangStatus, object *kubernetes.Object) (time.Duration, error) {
	if object.Epoch > 0 && object.Epoch < command.Epoch {
		status.Later = object.Attempt
		return pollAfter, r.tell(ctx, status)
	}
	r.logger.Warn("command ignored: the object is of a later attempt", zap.String("workload", string(command.Workload)),
		zap.Int("attempt", command.Attempt), zap.Int("object's attempt", object.Attempt))
	return 0, nil
}

// awaitRelease reports the status, as released when no pod of the workload is
// left, by an uncached read, and nothing that could make more of them.
func (r *Reconciler) awaitRelease(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	if status.Released {
		return 0, r.tell(ctx, status)
	}
	if err := r.pinCleanup(ctx, command); err != nil {
		return 0, err
	}
	// Each pod that ends leads here; the API server is asked once none is seen.
	if !r.holding(command) {
		left, err := r.cluster.Remaining(ctx, command.Workload, command.Namespace)
		if err != nil {
			return 0, err
		}
		status.Released = left.Nothing()
	}
	if err := r.tell(ctx, status); err != nil {
		return 0, err
	}
	if !status.Released {
		return pollAfter, nil
	}
	return 0, nil
}
