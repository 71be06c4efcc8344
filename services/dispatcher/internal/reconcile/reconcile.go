package reconcile

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	// Retries of what failed begin at retryFirst and double up to retryMost.
	retryFirst = 20 * time.Millisecond
	retryMost  = 10 * time.Second
	// largeGang is from how many pods on a gang is not looked at for each change.
	largeGang = 64
	// perPod is how long, per pod, changes of a large gang are gathered before it is
	// looked at: a pass goes through all pods, and while they are made, sent and
	// bound each of them changes several times. For 512 pods it is 51 ms.
	perPod = 100 * time.Microsecond
)

// Reconciler works on workloads, each by one worker at a time.
type Reconciler struct {
	*tools
	order       *creationsFirst
	republisher *republisher
	sweeper     *sweeper
	strays      *strays
}

// Schedule is which workload is looked at next, and when: a work queue.
type Schedule = workqueue.TypedRateLimitingInterface[workload.ID]

// pace is what drives a reconciler.
type pace struct {
	queue  Schedule
	order  *creationsFirst
	now    func() time.Time
	atOnce int // writes of one pass on their way
}

// New returns a reconciler. reported are the last statuses of earlier dispatchers.
func New(cluster Cluster, report Reporter, reported map[workload.ID]event.GangStatus, logger *zap.Logger, metrics *Metrics) *Reconciler {
	order := newCreationsFirst()
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[workload.ID](retryFirst, retryMost),
		workqueue.TypedRateLimitingQueueConfig[workload.ID]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[workload.ID]{
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[workload.ID]{Queue: order}),
			}),
		})
	return newReconciler(cluster, report, reported, logger, metrics, pace{queue, order, time.Now, pinsAtOnce})
}

// NewSteps returns a reconciler that is driven by hand, pass by pass: it starts no
// goroutine, writes one thing at a time, and has its schedule and clock from the
// caller. It is for a simulation.
func NewSteps(cluster Cluster, report Reporter, reported map[workload.ID]event.GangStatus, logger *zap.Logger, metrics *Metrics,
	schedule Schedule, now func() time.Time,
) *Reconciler {
	return newReconciler(cluster, report, reported, logger, metrics, pace{schedule, newCreationsFirst(), now, 1})
}

func newReconciler(cluster Cluster, report Reporter, reported map[workload.ID]event.GangStatus, logger *zap.Logger, metrics *Metrics, by pace) *Reconciler {
	all, shown := newWorkloads(reported), &shownPods{}
	owners := &owners{controllers: newControllers()}
	reaper := &reaper{cluster: cluster, logger: logger, metrics: metrics, now: by.now, atOnce: by.atOnce}
	look := func(id workload.ID) { by.queue.Add(id) }
	strays := &strays{workloads: all, owners: owners, cluster: cluster, look: look, logger: logger, metrics: metrics, now: by.now}
	return &Reconciler{
		tools: &tools{
			cluster: cluster, workloads: all, queue: by.queue, logger: logger, metrics: metrics, now: by.now, shown: shown,
			reports:     &reports{report, all, by.order},
			permissions: permissionChecker{cluster}, owners: owners, reaper: reaper,
			placer:    &placer{cluster, &starter{cluster: cluster, workloads: all, logger: logger, now: by.now}, owners, reaper, metrics, by.atOnce},
			unplanned: &unplannedPods{cluster, owners, reaper, strays.ruleOf, logger, metrics, by.now},
			fetches:   &fetches{now: by.now},
		},
		order: by.order, strays: strays,
		republisher: &republisher{workloads: all, look: look},
		sweeper:     &sweeper{workloads: all, shown: shown, cluster: cluster, look: look, logger: logger, metrics: metrics, now: by.now},
	}
}

// SetCache sets what is watched, before Run, Sweep and Strays. It comes after New,
// because the cache calls Changed.
func (r *Reconciler) SetCache(cache Cache) {
	r.cache, r.owners.cache, r.reaper.cache, r.sweeper.cache, r.strays.cache = cache, cache, cache, cache, cache
}

// SetTruth sets what asks queue-manager for workloads that this dispatcher has no command
// for, before Run.
func (r *Reconciler) SetTruth(truth Truth) { r.truth = truth }

// SetTracer sets what makes spans, before Run.
func (r *Reconciler) SetTracer(tracer tracing.Tracer) { r.tracer = tracer }

// Traced notes the context of a command that Command is about to be given.
func (r *Reconciler) Traced(id workload.ID, traceparent string) {
	if r.tracer.On() {
		r.workloads.setTrace(id, traceparent)
	}
}

// Run reconciles workloads with the given number of workers until ctx ends.
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

// Command applies what is wanted of a workload. An older leader's is refused.
func (r *Reconciler) Command(command *event.GangCommand) {
	t, later := r.workloads.accept(command, r.now())
	if later != nil {
		r.logger.Warn("command is older than the known one; refusing it",
			zap.String("workload", string(command.Workload)), zap.Int("attempt", command.Attempt),
			zap.Int64("epoch", command.Epoch), zap.Int64("known epoch", later.Epoch))
		return
	}
	known, _ := t.last()
	r.order.setNew(command.Workload, command.State == event.Present && (known.Attempt != command.Attempt || !known.Created))
	r.Look(command.Workload)
}

// Look has a workload looked at.
func (r *Reconciler) Look(id workload.ID) { r.queue.Add(id) }

// Changed has a workload looked at of which something has changed in Kubernetes.
func (r *Reconciler) Changed(id workload.ID) {
	pods := 0
	if command := r.workloads.get(id).wanted(); command != nil {
		for _, p := range command.Placements {
			pods += p.Pods
		}
	}
	if pods < largeGang {
		r.queue.Add(id)
		return
	}
	r.queue.AddAfter(id, time.Duration(pods)*perPod) // the first of them counts
}

// Next reconciles the workload that the schedule has next; it must have one.
func (r *Reconciler) Next(ctx context.Context) { r.next(ctx) }

func (r *Reconciler) next(ctx context.Context) bool {
	id, stopped := r.queue.Get()
	if stopped {
		return false
	}
	defer r.queue.Done(id)
	again, err := r.look(ctx, id)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.metrics.failures.Inc()
		r.logger.Warn("cannot reconcile a workload; retrying", zap.String("workload", string(id)), zap.Error(err))
		r.queue.AddRateLimited(id)
	default:
		r.queue.Forget(id)
		if again > 0 {
			r.queue.AddAfter(id, again)
		}
	}
	return true
}

// look does the next step for a workload, answers what was asked about it, and returns
// when to look again at the latest; zero means when something changes.
func (r *Reconciler) look(ctx context.Context, id workload.ID) (again time.Duration, err error) {
	t := r.workloads.get(id)
	command := t.wanted()
	switch {
	case command == nil:
		return 0, nil // unknown; the sweep cares for what is left of it
	case command.State == event.Forgotten && command.Provision != nil:
		if err := r.newPass(t, command).removeRequests(ctx, ""); err != nil {
			return 0, err
		}
		return 0, r.reports.forget(ctx, t)
	case command.State == event.Forgotten && command.Home != "":
		return r.newPass(t, command).removeMoved(ctx)
	case command.State == event.Forgotten:
		return 0, r.reports.forget(ctx, t)
	}
	if err := r.reports.repeat(ctx, t); err != nil {
		return 0, err
	}
	if again, err = r.newPass(t, command).run(ctx); err != nil {
		return 0, err
	}
	return again, r.reports.answer(ctx, t)
}
