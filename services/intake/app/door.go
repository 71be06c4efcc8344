package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/door"
	"muster.dev/muster/services/intake/internal/queueobjects"
)

// resyncEvery is how often the door asks queue-manager anew: a poll behind the
// events.
const resyncEvery = 5 * time.Minute

// runDoor runs the door to Kubernetes until ctx ends.
func runDoor(ctx context.Context, config *Config, b *bus.Bus, spending *budget.Budget, runtime *service.Runtime) error {
	ready := runtime.Health.Await("objects of Kubernetes read")
	client, err := door.Connect(config.Kubeconfig)
	if err != nil {
		return err
	}
	d := door.New(door.Options{Cluster: config.Cluster, DefaultQueue: config.DefaultQueue, Operator: config.Operator, Budget: spending, Logger: runtime.Logger}, messages{b, query.NewClient(b.Conn()), runtime.Tracer})
	d.SetCluster(client)
	var namespaces []string
	if config.KubeNamespaces != "" {
		namespaces = strings.Split(config.KubeNamespaces, ",")
	}
	if err := client.Watch(ctx, namespaces, d.Look); err != nil {
		return err
	}
	events, err := b.Follow(ctx, bus.EventsStream, bus.EventsSubject("*", "*"))
	if err != nil {
		return err
	}
	gangs, err := b.Follow(ctx, bus.CapacityStream, bus.GangSubject(config.Cluster, "*"))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return hear(ctx, events.C, d, runtime.Logger) })
	group.Go(func() error { return hear(ctx, gangs.C, d, runtime.Logger) })
	group.Go(func() error { d.Run(ctx); return ctx.Err() })
	group.Go(func() error { return resync(ctx, b, d) })
	if err := watchQueues(ctx, group, config, b, runtime.Logger); err != nil {
		return err
	}
	ready()
	return group.Wait()
}

// watchQueues brings the cluster's own queues to queue-manager, where it has
// definitions of Kueue's objects. It is looked once, at the start.
func watchQueues(ctx context.Context, group *errgroup.Group, config *Config, b *bus.Bus, logger *zap.Logger) error {
	client, err := queueobjects.Connect(config.Kubeconfig)
	if err != nil {
		return err
	}
	present := false
	err = service.Patiently(ctx, logger, "look for Kueue's kinds in the cluster", func(error) bool { return true }, func() (err error) {
		present, err = client.Present(ctx)
		return err
	})
	if err != nil || !present {
		return err
	}
	changed := make(chan struct{}, 1)
	if err := client.Watch(ctx, func() {
		select {
		case changed <- struct{}{}:
		default: // a round is to come
		}
	}); err != nil {
		return err
	}
	logger.Info("the cluster's queues count", zap.String("cluster", config.Cluster))
	sync := &queueobjects.Sync{Name: config.Cluster, Cluster: client, Manager: query.NewClient(b.Conn()), Logger: logger}
	group.Go(func() error { return sync.Run(ctx, changed) })
	return nil
}

// hear hands over what the bus says.
func hear(ctx context.Context, deliveries <-chan bus.Delivery, d *door.Door, logger *zap.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case delivery, open := <-deliveries:
			if !open {
				return ctx.Err()
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
					logger.Warn("event dropped: it cannot be read", zap.String("subject", delivery.Subject), zap.Error(err))
				}
			}
		}
	}
}

// resync asks for everything anew after a reconnection and now and then.
func resync(ctx context.Context, b *bus.Bus, d *door.Door) error {
	reconnected, done := b.Reconnected()
	defer done()
	tick := time.NewTicker(resyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reconnected:
		case <-tick.C:
		}
		d.LookAtAll()
	}
}

// messages is the bus as the door sees it.
type messages struct {
	bus     *bus.Bus
	queries *query.Client
	tracer  tracing.Tracer
}

// source is the CloudEvents source of what the door says.
const source = "muster/intake/kubernetes"

// Submit publishes a workload and returns when it is stored.
func (m messages) Submit(ctx context.Context, queue string, submitted *event.WorkloadSubmitted) error {
	w := submitted.Workload
	span := m.tracer.Begin(w.ID, "", "object read", "muster.queue", queue)
	err := m.publish(ctx, queue, "submitted/"+string(w.ID)+"/"+w.Digest+"/"+event.NewID(), submitted, span)
	span.End(err)
	return err
}

// Cancel publishes a cancellation and returns when it is stored.
func (m messages) Cancel(ctx context.Context, queue string, cancel *event.WorkloadCancel) error {
	return m.publish(ctx, queue, event.NewID(), cancel, tracing.Span{})
}

func (m messages) publish(ctx context.Context, queue, id string, payload event.Payload, span tracing.Span) error {
	envelope, err := event.New(id, source, time.Now(), payload)
	if err != nil {
		return err
	}
	envelope.Traceparent = span.Traceparent()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return m.bus.Publish(ctx, bus.WorkloadSubject(queue), envelope)
}

// askTimeout bounds a question to queue-manager.
const askTimeout = 5 * time.Second

// Record asks queue-manager for a workload.
func (m messages) Record(ctx context.Context, id workload.ID) (*workload.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := m.queries.Workloads(ctx, query.WorkloadsRequest{ID: id})
	if err != nil {
		return nil, fmt.Errorf("ask for workload %s: %w", id, err)
	}
	if len(answer.Workloads) == 0 {
		return nil, nil
	}
	return &answer.Workloads[0], nil
}
