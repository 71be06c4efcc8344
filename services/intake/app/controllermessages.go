package app

import (
	"context"
	"fmt"
	"slices"
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
	cluster string
	queries *query.Client
	tracer  tracing.Tracer
}

// source is the CloudEvents source of the controller's messages.
const source = "muster/intake/kubernetes"

// Submit publishes a workload and returns when it is stored.
func (m messages) Submit(ctx context.Context, queue, _ string, submitted *event.WorkloadSubmitted) (uint64, error) {
	w := submitted.Workload
	span := m.tracer.Begin(w.ID, "", "object read", "muster.queue", queue)
	sequence, err := m.publish(ctx, queue, "submitted/"+string(w.ID)+"/"+w.Digest+"/"+event.NewID(), submitted, span)
	span.End(err)
	return sequence, err
}

// Cancel publishes a cancellation and returns when it is stored.
func (m messages) Cancel(ctx context.Context, queue, _ string, cancel *event.WorkloadCancel) (uint64, error) {
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

// Records queries queue-manager for workloads; those that it does not have are left out. One of
// an earlier version, which does not know the request for several, answers with others, which are
// left out as well.
func (m messages) Records(ctx context.Context, ids []workload.ID) ([]workload.Record, error) {
	request := query.WorkloadsRequest{IDs: ids}
	if len(ids) == 1 {
		request = query.WorkloadsRequest{ID: ids[0]}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := m.queries.Workloads(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("ask for %d workloads, %s the first: %w", len(ids), ids[0], err)
	}
	return onlyAsked(answer.Workloads, ids), nil
}

// Statuses queries queue-manager for the statuses of what runs in the place of the cluster's objects.
func (m messages) Statuses(ctx context.Context, ids []workload.ID) ([]query.HomeStatus, error) {
	return statusesOf(ctx, m.queries, m.cluster, anyQueue, ids)
}

// anyQueue is in the subject of questions that are about no queue.
const anyQueue = "any"

func statusesOf(ctx context.Context, queries *query.Client, cluster, queue string, ids []workload.ID) ([]query.HomeStatus, error) {
	answer, err := pageOf(ctx, queries, cluster, queue, query.HomeRequest{IDs: ids, Statuses: true})
	if err != nil {
		return nil, fmt.Errorf("ask for the statuses of %d workloads, %s the first: %w", len(ids), ids[0], err)
	}
	return answer.Statuses, nil
}

// Placed queries queue-manager for what runs in the place of the cluster's objects.
func (m messages) Placed(ctx context.Context) ([]workload.Record, error) {
	return placedOf(ctx, m.queries, m.cluster, anyQueue)
}

func placedOf(ctx context.Context, queries *query.Client, cluster, queue string) (all []workload.Record, err error) {
	for request := (query.HomeRequest{Placed: true}); ; {
		page, err := pageOf(ctx, queries, cluster, queue, request)
		if err != nil {
			return nil, fmt.Errorf("ask for the workloads whose objects move: %w", err)
		}
		all = append(all, page.Workloads...)
		if page.Next <= request.After {
			return all, nil
		}
		request.After = page.Next
	}
}

func pageOf(ctx context.Context, queries *query.Client, cluster, queue string, request query.HomeRequest) (query.HomeAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return queries.Home(ctx, cluster, queue, request)
}

// onlyAsked returns the records of these ids.
func onlyAsked(records []workload.Record, ids []workload.ID) []workload.Record {
	asked := make(map[workload.ID]bool, len(ids))
	for _, id := range ids {
		asked[id] = true
	}
	return slices.DeleteFunc(records, func(r workload.Record) bool { return !asked[r.ID] })
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
		addStandings(all, page.Workloads)
		if request.After = page.Next; page.Next == 0 {
			break
		}
	}
	return all, nil
}

func addStandings(all map[workload.ID]kubecontroller.Standing, waiting []workload.Record) {
	for i := range waiting {
		w := &waiting[i]
		all[w.ID] = kubecontroller.Standing{Position: int(w.Position), Starts: w.Estimate()}
	}
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
