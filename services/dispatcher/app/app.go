package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
	"muster.dev/muster/services/dispatcher/internal/permission"
	"muster.dev/muster/services/dispatcher/internal/reconcile"
)

// Run acts for the cluster while it holds the cluster's lease, and stands by while
// another process does, until ctx ends.
func Run(ctx context.Context, config *Config, runtime *service.Runtime) error {
	ctx = runtime.ForKubernetes(ctx)
	d := &dispatcher{config: config, logger: runtime.Logger, metrics: reconcile.NewMetrics(runtime.Metrics), tracer: runtime.Tracer}
	d.ready = runtime.Health.Await("commands and caches read, or standby")
	namespace, name := config.Lease.Split()
	stored, err := kubernetes.ConnectPermission(config.Kubeconfig, config.Cluster, namespace, name)
	if err != nil {
		return err
	}
	d.permission = permission.New(stored, permission.MachineClock(), config.Permission)
	permissionMetrics(runtime.Metrics, d.permission)
	// Before NATS, which may be away: this process obeys the permission all the same.
	obeying := obey(ctx, d.permission, d.logger)
	defer obeying()
	if d.bus, err = d.connect(ctx); err != nil {
		return err
	}
	defer d.bus.Close()
	runtime.AwaitNATS(d.bus)
	if err := d.bus.AwaitStreams(ctx); err != nil {
		return err
	}
	if d.client, err = kubernetes.Connect(config.Kubeconfig, config.Cluster, &d.guard, runtime.Metrics); err != nil {
		return err
	}
	contact := &lease.Contact{}
	runtime.Health.Check("lease", contact.Check)
	return lease.Run(ctx, lease.Options{
		Client: d.client.Leases(), Namespace: namespace, Name: name, Duration: config.Lease.Duration,
		Holder: service.Holder(), Logger: runtime.Logger, Guard: &d.guard, Standby: d.ready, Contact: contact, Failed: lease.FailedTerms(runtime.Metrics).Inc,
		AtLeast: func(ctx context.Context) (int64, error) {
			last, err := lastStatuses(ctx, d.bus, config.Cluster)
			return last.session, err
		},
	}, d.act)
}

// dispatcher is the service.
type dispatcher struct {
	config  *Config
	logger  *zap.Logger
	metrics *reconcile.Metrics
	ready   func()
	bus     *bus.Bus
	client  *kubernetes.Client
	guard   lease.Guard
	tracer  tracing.Tracer
	// permission outlives the terms of the process, and needs none.
	permission *permission.Keeper
}

// act is one term: all memory is of it alone.
func (d *dispatcher) act(ctx context.Context, epoch int64) error {
	last, err := lastStatuses(ctx, d.bus, d.config.Cluster)
	if err != nil {
		return err
	}
	ctx, replaced := context.WithCancelCause(ctx)
	defer replaced(nil)
	reporter := newReporter(d.bus, d.config.Cluster, epoch, last, replaced)
	reconciler := reconcile.New(d.client, reporter.report, last.statuses, d.logger, d.metrics)
	watch, err := d.client.StartWatch(ctx, reconciler.Changed)
	if err != nil {
		return err
	}
	commands, err := d.bus.Follow(ctx, bus.DispatchStream, event.DispatchFilter(d.config.Cluster))
	if err != nil {
		return err
	}
	asked, err := bus.Asked(ctx, d.bus, d.config.Cluster, d.logger)
	if err != nil {
		return err
	}
	reconciler.SetCache(watch)
	reconciler.SetTracer(d.tracer)
	truth := truthOf(d.bus, d.config.Cluster)
	reconciler.SetTruth(truth)
	reconciler.SetPermission(d.permission)
	if err := d.carry(ctx, reconciler); err != nil {
		return err
	}
	permitted := &permitted{keeper: d.permission, reconciler: reconciler, reporter: reporter, epoch: epoch, granted: make(chan *event.PermissionGranted, 1), connection: d.bus, logger: d.logger}
	group, ctx := errgroup.WithContext(ctx)
	warm := newWarmer(d)
	group.Go(func() error { return warm.run(ctx) })
	given := func(command *event.GangCommand) {
		warm.use(command.Namespace)
		reconciler.Command(command)
	}
	group.Go(func() error {
		return followCommands(ctx, commands, reconciler.Traced, given, permitted.granted, d.logger, d.ready)
	})
	group.Go(func() error { return permitted.renew(ctx, commands.CaughtUp) })
	group.Go(func() error { reconciler.Run(ctx, d.config.Workers); return ctx.Err() })
	group.Go(func() error { return sweep(ctx, truth, reconciler, d.config.SweepEvery) })
	group.Go(func() error { return strays(ctx, d.bus, reconciler, commands.CaughtUp) })
	group.Go(func() error { return republish(ctx, asked, d.bus, reporter, reconciler, d.logger) })
	err = group.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, bus.ErrReplaced) {
		return fmt.Errorf("%w: %w", lease.ErrLost, cause)
	}
	return err
}

// followCommands gives on each command, and what traces it, and reports ready once all that the
// stream has are given.
func followCommands(ctx context.Context, commands *bus.Following, traced func(workload.ID, string), given func(*event.GangCommand), granted chan<- *event.PermissionGranted, logger *zap.Logger, ready func()) error {
	caughtUp := commands.CaughtUp
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-caughtUp:
			caughtUp = nil
			ready()
		case d, open := <-commands.C:
			if !open {
				return ctx.Err()
			}
			envelope, payload, err := d.Event()
			if err != nil {
				logger.Error("cannot read a command; dropping it", zap.String("subject", d.Subject), zap.Error(err))
				continue
			}
			if g, is := payload.(*event.PermissionGranted); is {
				select {
				case granted <- g:
				case <-ctx.Done():
				}
				continue
			}
			command, ok := payload.(*event.GangCommand)
			if !ok {
				logger.Error("message is not a command; dropping it", zap.String("subject", d.Subject), zap.String("type", payload.EventType()))
				continue
			}
			traced(command.Workload, envelope.Traceparent)
			given(command)
		}
	}
}

// strays deals with pods that are not of Muster, once it is known what is. Without an
// answer of queue-manager no rule is known, and none of them is touched.
func strays(ctx context.Context, b *bus.Bus, reconciler *reconcile.Reconciler, caughtUp <-chan struct{}) error {
	select {
	case <-caughtUp:
	case <-ctx.Done():
		return ctx.Err()
	}
	queries := query.NewClient(b.Conn())
	tick := time.NewTicker(reconcile.StraysEvery)
	defer tick.Stop()
	silent, again := 0, 0 // rounds without an answer, and until it is asked for again
	for {
		var answer query.StraysAnswer
		if again--; again < 0 {
			var err error
			if answer, err = queries.Strays(ctx); err != nil { // as of a queue-manager or accounts.conf of an earlier version
				answer.Rules, silent = nil, min(2*silent+1, 15)
			} else {
				silent = 0
			}
			again = silent
		}
		reconciler.Strays(ctx, answer.Rules)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func sweep(ctx context.Context, truth reconcile.Truth, reconciler *reconcile.Reconciler, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			reconciler.Sweep(ctx, truth)
		}
	}
}
