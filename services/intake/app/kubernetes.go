package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/kubecontroller"
)

// resyncEvery is how often the controller asks queue-manager about every workload,
// in case it missed an event.
const resyncEvery = 5 * time.Minute

// runController runs the Kubernetes controller until ctx ends.
func runController(ctx context.Context, config *Config, b *bus.Bus, spending *budget.Budget, runtime *service.Runtime) error {
	ready := runtime.Health.Await("objects of Kubernetes read")
	client, err := kubecontroller.Connect(config.Kubeconfig)
	if err != nil {
		return err
	}
	if config.Webhooks.Address != "" {
		client.StampedBy(config.Webhooks.Configuration)
		stop, err := serveWebhooks(ctx, config.Webhooks, client.Core(), runtime)
		if err != nil {
			return err
		}
		defer stop()
	}
	exchange := exchangeOf(config, b, runtime)
	d := kubecontroller.New(kubecontroller.Options{
		Cluster: config.Cluster, DefaultQueue: config.DefaultQueue, Queues: split(config.MemberQueues), Operator: config.Operator, Budget: spending, Logger: runtime.Logger,
		Standings: exchange.Standings, Statuses: exchange.Statuses, Placed: exchange.Placed,
	}, exchange)
	d.SetCluster(client)
	runtime.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_intake_objects_forbidden", Help: "Objects of the cluster that are not submitted because intake may not write them.",
	}, func() float64 { return float64(d.Forbidden()) }))
	begin := func(what string, do func() error) error {
		return service.Patiently(ctx, runtime.Logger, what, anyError, do)
	}
	if err := begin("watch the objects of the cluster", func() error { return client.Watch(ctx, split(config.KubeNamespaces), d.Enqueue) }); err != nil {
		return err
	}
	followed, err := followAll(ctx, config, b, begin)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range followed {
		group.Go(func() error { return deliver(ctx, f.C, d, runtime.Logger) })
	}
	group.Go(func() error { d.Run(ctx); return ctx.Err() })
	group.Go(func() error {
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		return resync(ctx, b, d, look.C, runtime.Logger)
	})
	if config.MemberQueues == "" { // the objects of a further cluster make no queues
		if err := watchQueues(ctx, group, config, b, runtime.Logger); err != nil {
			return err
		}
	}
	ready()
	return group.Wait()
}

// exchange is the controller's way to NATS and queue-manager.
type exchange interface {
	kubecontroller.Messages
	Standings(ctx context.Context) (map[workload.ID]kubecontroller.Standing, error)
	Statuses(ctx context.Context, ids []workload.ID) ([]query.HomeStatus, error)
	Placed(ctx context.Context) ([]workload.Record, error)
}

func exchangeOf(config *Config, b *bus.Bus, runtime *service.Runtime) exchange {
	queries := query.NewClient(b.Conn()).Patient()
	if config.MemberQueues != "" {
		return memberMessages{config.Cluster, split(config.MemberQueues), queries, runtime.Tracer}
	}
	return messages{b, config.Cluster, queries, runtime.Tracer}
}

// followAll begins to follow the events of workloads, of those queues to which objects may be
// submitted, and the pods of the cluster.
func followAll(ctx context.Context, config *Config, b *bus.Bus, begin func(what string, do func() error) error) (all []*bus.Following, err error) {
	queues := split(config.MemberQueues)
	if len(queues) == 0 {
		queues = []string{"*"}
	}
	follow := func(what, stream, subject string) error {
		return begin(what, func() error {
			f, err := b.Follow(ctx, stream, subject)
			if err == nil {
				all = append(all, f)
			}
			return err
		})
	}
	for _, queue := range queues {
		if err := follow("follow events of workloads", bus.EventsStream, event.EventsSubject(queue, "*")); err != nil {
			return nil, err
		}
	}
	err = follow("follow observed pods", bus.CapacityStream, event.GangSubject(config.Cluster, "*"))
	return all, err
}

// anyError makes service.Patiently retry every error: missing rights, for example,
// may be granted later.
func anyError(error) bool { return true }

// deliver passes events from the bus to the controller. Those of workloads without an object here
// are not read: with many clusters, or many submissions over NATS, most are.
func deliver(ctx context.Context, deliveries <-chan bus.Delivery, d *kubecontroller.Controller, logger *zap.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case delivery, open := <-deliveries:
			if !open {
				return ctx.Err()
			}
			if !d.Tracks(event.SubjectWorkload(delivery.Subject)) {
				continue
			}
			_, payload, err := delivery.Event()
			switch e := payload.(type) {
			case *event.WorkloadChanged:
				d.Changed(e)
			case *event.WorkloadRejected:
				d.Rejected(e)
			case *event.GangObserved:
				d.Gang(e)
			default:
				if err != nil {
					logger.Warn("cannot read an event; dropping it", zap.String("subject", delivery.Subject), zap.Error(err))
				}
			}
		}
	}
}

// lookEvery is how often the controller checks whether the streams were recreated.
const lookEvery = 5 * time.Second

// resync enqueues every object after a reconnection and periodically. At each look it
// repeats unanswered messages if their stream was recreated or purged.
func resync(ctx context.Context, b *bus.Bus, d *kubecontroller.Controller, look <-chan time.Time, logger *zap.Logger) error {
	reconnected, done := b.Reconnected()
	defer done()
	tick := time.NewTicker(resyncEvery)
	defer tick.Stop()
	made := streamTimes{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reconnected:
		case <-tick.C:
		case <-look:
			again, first := made.look(ctx, b.State)
			d.RepublishLost(first)
			if len(again) > 0 {
				logger.Warn("streams were recreated; repeating unanswered submissions", zap.Strings("streams", again))
				d.RepublishUnanswered()
			}
			continue
		}
		d.Resync(ctx)
	}
}

// streamTimes has the last known creation time of the streams that carry submissions
// and their answers.
type streamTimes map[string]time.Time

// look returns the streams that were recreated since the last look, and the first
// sequence of the stream of submissions, 0 if unknown. If a stream is missing or NATS
// does not answer in time, the known time stays: older servers refuse the question.
func (t streamTimes) look(ctx context.Context, state func(ctx context.Context, stream string) (bus.StreamState, error)) (again []string, first uint64) {
	for _, stream := range []string{bus.WorkloadStream, bus.EventsStream} {
		bounded, cancel := context.WithTimeout(ctx, lookEvery)
		now, err := state(bounded, stream)
		cancel()
		if err != nil {
			continue // the publishers and subscribers of the stream log it
		}
		if seen, known := t[stream]; known && !seen.Equal(now.Created) {
			again = append(again, stream)
		}
		t[stream] = now.Created
		if stream == bus.WorkloadStream {
			first = now.First
		}
	}
	return again, first
}
