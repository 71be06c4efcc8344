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
	begin := func(what string, do func() error) error {
		return service.Patiently(ctx, runtime.Logger, what, anyError, do)
	}
	if err := begin("watch the objects of the cluster", func() error { return client.Watch(ctx, namespaces, d.Look) }); err != nil {
		return err
	}
	var events, gangs *bus.Following
	if err := begin("follow events of workloads", func() (err error) {
		events, err = b.Follow(ctx, bus.EventsStream, bus.EventsSubject("*", "*"))
		return err
	}); err != nil {
		return err
	}
	if err := begin("follow what is seen of pods", func() (err error) {
		gangs, err = b.Follow(ctx, bus.CapacityStream, bus.GangSubject(config.Cluster, "*"))
		return err
	}); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return hear(ctx, events.C, d, runtime.Logger) })
	group.Go(func() error { return hear(ctx, gangs.C, d, runtime.Logger) })
	group.Go(func() error { d.Run(ctx); return ctx.Err() })
	group.Go(func() error { return resync(ctx, b, d, runtime.Logger) })
	if err := watchQueues(ctx, group, config, b, runtime.Logger); err != nil {
		return err
	}
	ready()
	return group.Wait()
}

// anyError is for service.Patiently: every error may pass, as that of a user whose
// rights are yet to come.
func anyError(error) bool { return true }

// watchQueues brings the cluster's own queues to queue-manager, where it has
// definitions of Kueue's objects. It is looked once, at the start.
func watchQueues(ctx context.Context, group *errgroup.Group, config *Config, b *bus.Bus, logger *zap.Logger) error {
	client, err := queueobjects.Connect(config.Kubeconfig)
	if err != nil {
		return err
	}
	present := false
	err = service.Patiently(ctx, logger, "look for Kueue's kinds in the cluster", anyError, func() (err error) {
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

// lookEvery is how often the door looks whether the streams were made again.
const lookEvery = 5 * time.Second

// resync asks for everything anew after a reconnection and now and then, and repeats
// what has no answer when the streams were made again.
func resync(ctx context.Context, b *bus.Bus, d *door.Door, logger *zap.Logger) error {
	reconnected, done := b.Reconnected()
	defer done()
	tick := time.NewTicker(resyncEvery)
	defer tick.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var made time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reconnected:
		case <-tick.C:
		case <-look.C:
			if now := eventsMade(ctx, b); !now.IsZero() && !now.Equal(made) {
				if !made.IsZero() {
					logger.Warn("streams of NATS were made again: publishing again what has no answer")
					d.RepeatSoon()
				}
				made = now
			}
			continue
		}
		d.LookAtAll()
	}
}

// eventsMade is when the stream of events was made, zero while that is not known. The
// door has no right to look at the stream of submissions; a loss of that one alone is
// made good by its slow repetition.
func eventsMade(ctx context.Context, b *bus.Bus) time.Time {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	state, err := b.State(ctx, bus.EventsStream)
	if err != nil {
		return time.Time{} // the subscription to it logs that
	}
	return state.Created
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
