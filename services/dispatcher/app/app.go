// Package app composes the dispatcher from its parts. It is not the process,
// which is the main package or `muster dev`.
package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
	"muster.dev/muster/services/dispatcher/internal/reconcile"
)

// Config is the dispatcher's settings.
type Config struct {
	NATSURL         string
	NATSCredentials string
	// NATSReplicas is on how many servers of a NATS cluster a stream is kept that
	// this service makes; 0 is one.
	NATSReplicas int
	// Cluster is what queue-manager calls the cluster of this dispatcher.
	Cluster string
	// Kubeconfig is a path; empty means the pod's own service account.
	Kubeconfig string
	Workers    int
	// SweepEvery is how often orphans are looked for.
	SweepEvery time.Duration
}

const (
	defaultWorkers = 32
	defaultSweep   = time.Minute
)

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	flags.StringVar(&c.NATSURL, "nats-url", "nats://127.0.0.1:4222", "`URL` of the NATS server")
	flags.StringVar(&c.NATSCredentials, "nats-credentials", "", "`file` with NATS credentials: .creds, or the seed of an nkey")
	flags.IntVar(&c.NATSReplicas, "nats-replicas", 0, "on how many servers of a NATS cluster a stream is kept that is made here; the same for all services")
	flags.StringVar(&c.Cluster, "cluster", "", "`name` of the cluster in Muster")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `file`; without it the pod's own service account")
	flags.IntVar(&c.Workers, "workers", defaultWorkers, "workloads worked on at once")
	flags.DurationVar(&c.SweepEvery, "sweep-every", defaultSweep, "how often objects without a live workload are looked for")
}

// Validate implements service.Config.
func (c *Config) Validate() error {
	var faults []error
	if c.Workers == 0 {
		c.Workers = defaultWorkers
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = defaultSweep
	}
	if c.NATSURL == "" {
		faults = append(faults, errors.New("nats-url: is missing"))
	}
	if !bus.ValidReplicas(c.NATSReplicas) {
		faults = append(faults, fmt.Errorf("nats-replicas: %d: want 0 to %d", c.NATSReplicas, bus.MaxReplicas))
	}
	if !bus.ValidName(c.Cluster) {
		faults = append(faults, fmt.Errorf("cluster: %q: want a name of lower-case letters, digits and dashes", c.Cluster))
	}
	if c.Workers < 0 {
		faults = append(faults, fmt.Errorf("workers: %d: want at least 1", c.Workers))
	}
	if c.SweepEvery < 0 {
		faults = append(faults, fmt.Errorf("sweep-every: %s is negative", c.SweepEvery))
	}
	return errors.Join(faults...)
}

// Run runs the dispatcher until ctx ends.
func Run(ctx context.Context, config *Config, runtime *service.Runtime) error {
	ready := runtime.Health.Await("commands and caches read")
	b, err := bus.Connect(ctx, bus.Options{
		URL: config.NATSURL, Name: "dispatcher-" + config.Cluster, Logger: runtime.Logger, CredentialsFile: config.NATSCredentials,
		Replicas: config.NATSReplicas,
	})
	if err != nil {
		return err
	}
	defer b.Close()
	runtime.Health.Check("nats", b.Ready)
	if err := b.EnsureStreams(ctx); err != nil {
		return err
	}
	client, err := kubernetes.Connect(config.Kubeconfig, config.Cluster)
	if err != nil {
		return err
	}
	reported, err := lastStatuses(ctx, b, config.Cluster)
	if err != nil {
		return err
	}
	reconciler := reconcile.New(client, reporter(b), reported, runtime.Logger, reconcile.NewMetrics(runtime.Metrics))
	watch, err := client.StartWatch(ctx, reconciler.Look)
	if err != nil {
		return err
	}
	commands, err := b.Follow(ctx, bus.DispatchStream, bus.DispatchFilter(config.Cluster))
	if err != nil {
		return err
	}
	reconciler.SetCache(watch)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return take(ctx, commands, reconciler, runtime.Logger, ready) })
	group.Go(func() error { reconciler.Run(ctx, config.Workers); return ctx.Err() })
	group.Go(func() error { return sweep(ctx, b, reconciler, config.SweepEvery) })
	group.Go(func() error { return repeat(ctx, b, reconciler, runtime.Logger) })
	return group.Wait()
}

// take hands the commands over.
func take(ctx context.Context, commands *bus.Following, reconciler *reconcile.Reconciler, logger *zap.Logger, ready func()) error {
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
			_, payload, err := d.Event()
			command, ok := payload.(*event.GangDesired)
			if err != nil || !ok {
				logger.Error("command dropped: it cannot be read", zap.String("subject", d.Subject), zap.Error(err))
				continue
			}
			reconciler.Command(command)
		}
	}
}

// lastStatuses reads what was reported last of each workload.
func lastStatuses(ctx context.Context, b *bus.Bus, cluster string) (map[workload.ID]event.GangStatus, error) {
	values, err := b.LastValues(ctx, bus.StatusStream, bus.ClusterStatusFilter(cluster))
	if err != nil {
		return nil, err
	}
	statuses := map[workload.ID]event.GangStatus{}
	for _, d := range values {
		_, payload, err := d.Event()
		if status, ok := payload.(*event.GangStatus); err == nil && ok {
			statuses[status.Workload] = *status // what cannot be read is told anew
		}
	}
	return statuses, nil
}

// reporter publishes statuses. Each has an id of its own: were it made of the
// content, a status that comes back within the dedupe window would be dropped.
func reporter(b *bus.Bus) reconcile.Reporter {
	return func(ctx context.Context, status event.GangStatus, keep time.Duration) error {
		envelope, err := event.New(event.NewID(), "muster/dispatcher/"+status.Cluster, time.Now(), &status)
		if err != nil {
			return err
		}
		encoded, err := envelope.Encode()
		if err != nil {
			return err
		}
		published, err := b.PublishEncoded(bus.StatusSubject(status.Cluster, status.Workload), envelope.ID, encoded, keep)
		if err != nil {
			return err
		}
		return published.Wait(ctx)
	}
}

func sweep(ctx context.Context, b *bus.Bus, reconciler *reconcile.Reconciler, every time.Duration) error {
	queries := query.NewClient(b.Conn())
	truth := func(ctx context.Context, id workload.ID) (*workload.Record, error) {
		answer, err := queries.Workloads(ctx, query.WorkloadsRequest{ID: id})
		if err != nil || len(answer.Workloads) == 0 {
			return nil, err
		}
		return &answer.Workloads[0], nil
	}
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

// repeat reports everything again after a reconnection.
func repeat(ctx context.Context, b *bus.Bus, reconciler *reconcile.Reconciler, logger *zap.Logger) error {
	reconnected, done := b.Reconnected()
	defer done()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reconnected:
			if err := b.EnsureStreams(ctx); err != nil {
				// The connection may be lost again; then there is another one.
				logger.Warn("cannot restore streams", zap.Error(err))
			}
			reconciler.Repeat()
		}
	}
}
