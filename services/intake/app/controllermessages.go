package app

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/kubecontroller"
)

// messages implements kubecontroller.Messages on the bus.
type messages struct {
	bus     *bus.Bus
	queries *query.Client
	tracer  tracing.Tracer
}

// source is the CloudEvents source of the controller's messages.
const source = "muster/intake/kubernetes"

// Submit publishes a workload and returns when it is stored.
func (m messages) Submit(ctx context.Context, queue string, submitted *event.WorkloadSubmitted) (uint64, error) {
	w := submitted.Workload
	span := m.tracer.Begin(w.ID, "", "object read", "muster.queue", queue)
	sequence, err := m.publish(ctx, queue, "submitted/"+string(w.ID)+"/"+w.Digest+"/"+event.NewID(), submitted, span)
	span.End(err)
	return sequence, err
}

// Cancel publishes a cancellation and returns when it is stored.
func (m messages) Cancel(ctx context.Context, queue string, cancel *event.WorkloadCancel) (uint64, error) {
	return m.publish(ctx, queue, event.NewID(), cancel, tracing.Span{})
}

func (m messages) publish(ctx context.Context, queue, id string, payload event.Payload, span tracing.Span) (uint64, error) {
	envelope, err := event.New(id, source, time.Now(), payload)
	if err != nil {
		return 0, err
	}
	envelope.Traceparent = span.Traceparent()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	published, err := m.bus.PublishAsync(event.WorkloadSubject(queue), envelope)
	if err != nil {
		return 0, err
	}
	return published.Stored(ctx)
}

// askTimeout bounds a query to queue-manager.
const askTimeout = 5 * time.Second

// Record queries queue-manager for a workload; nil if it has none.
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

// mostEstimated is how many pages of waiting workloads are asked for at once: as many as
// queue-manager estimates.
const mostEstimated = 20

// Standings queries queue-manager for where workloads that wait stand, and when they start.
func (m messages) Standings(ctx context.Context) (map[workload.ID]kubecontroller.Standing, error) {
	all := map[workload.ID]kubecontroller.Standing{}
	request := query.WorkloadsRequest{Phases: []workload.Phase{workload.Queued}}
	for range mostEstimated {
		page, err := m.page(ctx, request)
		if err != nil {
			return nil, err
		}
		for i := range page.Workloads {
			w := &page.Workloads[i]
			all[w.ID] = kubecontroller.Standing{Position: int(w.Position), Starts: w.Estimate()}
		}
		if request.After = page.Next; page.Next == 0 {
			break
		}
	}
	return all, nil
}

func (m messages) page(ctx context.Context, request query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := m.queries.Workloads(ctx, request)
	if err != nil {
		return answer, fmt.Errorf("ask when workloads start: %w", err)
	}
	return answer, nil
}
