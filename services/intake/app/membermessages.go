package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/kubecontroller"
)

// memberMessages implements kubecontroller.Messages in a further cluster: all goes to
// queue-manager, which sees to it that it is about objects of the cluster.
type memberMessages struct {
	cluster string
	queues  []string
	queries *query.Client
	tracer  tracing.Tracer
}

// Submit has a workload published, and returns when it is stored.
func (m memberMessages) Submit(ctx context.Context, queue, uid string, submitted *event.WorkloadSubmitted) (uint64, error) {
	w := submitted.Workload
	span := m.tracer.Begin(w.ID, "", "object read", "muster.queue", queue)
	sequence, err := m.publish(ctx, queue, uid, "submitted/"+string(w.ID)+"/"+w.Digest+"/"+event.NewID(), submitted, span)
	span.End(err)
	return sequence, err
}

// Cancel has a cancellation published, and returns when it is stored. The workload may have been
// moved to a queue that takes no objects of the cluster.
func (m memberMessages) Cancel(ctx context.Context, queue, uid string, cancel *event.WorkloadCancel) (uint64, error) {
	if !slices.Contains(m.queues, queue) {
		queue = m.queues[0]
	}
	return m.publish(ctx, queue, uid, event.NewID(), cancel, tracing.Span{})
}

func (m memberMessages) publish(ctx context.Context, queue, uid, id string, payload event.Payload, span tracing.Span) (uint64, error) {
	envelope, err := event.New(id, source, time.Now(), payload)
	if err != nil {
		return 0, err
	}
	envelope.Traceparent = span.Traceparent()
	encoded, err := envelope.Encode()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	answer, err := m.queries.Home(ctx, m.cluster, queue, query.HomeRequest{Message: encoded, UID: uid})
	if err != nil {
		return 0, fmt.Errorf("pass a message to queue %q: %w", queue, err)
	}
	return answer.Sequence, nil
}

// Records queries queue-manager for workloads; those that it does not have are left out.
func (m memberMessages) Records(ctx context.Context, ids []workload.ID) ([]workload.Record, error) {
	answer, err := m.ask(ctx, m.queues[0], query.HomeRequest{IDs: ids})
	if err != nil {
		return nil, fmt.Errorf("ask for %d workloads, %s the first: %w", len(ids), ids[0], err)
	}
	return onlyAsked(answer.Workloads, ids), nil
}

// Standings queries queue-manager for where workloads that wait stand, and when they start.
func (m memberMessages) Standings(ctx context.Context) (map[workload.ID]kubecontroller.Standing, error) {
	all := map[workload.ID]kubecontroller.Standing{}
	for _, queue := range m.queues {
		request := query.HomeRequest{Waiting: true}
		for range mostEstimated {
			page, err := m.ask(ctx, queue, request)
			if err != nil {
				return nil, fmt.Errorf("ask when workloads start: %w", err)
			}
			addStandings(all, page.Workloads)
			if request.After = page.Next; page.Next == 0 {
				break
			}
		}
	}
	return all, nil
}

// Statuses queries queue-manager for the statuses of what runs in the place of the cluster's objects.
func (m memberMessages) Statuses(ctx context.Context, ids []workload.ID) ([]query.HomeStatus, error) {
	return statusesOf(ctx, m.queries, m.cluster, m.queues[0], ids)
}

// Placed queries queue-manager for what runs in the place of the cluster's objects.
func (m memberMessages) Placed(ctx context.Context) ([]workload.Record, error) {
	return placedOf(ctx, m.queries, m.cluster, m.queues[0])
}

func (m memberMessages) ask(ctx context.Context, queue string, request query.HomeRequest) (query.HomeAnswer, error) {
	return pageOf(ctx, m.queries, m.cluster, queue, request)
}
