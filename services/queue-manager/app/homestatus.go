package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// statuses returns the statuses of the objects in the place of those that users made in the cluster.
// Each is the last that the dispatcher of the workload's own cluster has published, which NATS keeps:
// so it outlives this process, and no other cluster can publish it.
func (h homes) statuses(ctx context.Context, cluster string, ids []workload.ID) (answer query.HomeAnswer, err error) {
	if len(ids) > query.MostHomeStatuses {
		return answer, fmt.Errorf("%d ids are too many; want %d at most", len(ids), query.MostHomeStatuses)
	}
	page, err := h.page(ctx, cluster, query.WorkloadsRequest{IDs: ids})
	if err != nil {
		return answer, err
	}
	for _, w := range page.Workloads {
		if !w.Life.Moves || w.Cluster == "" {
			continue
		}
		found, err := h.last(ctx, bus.StatusStream, event.StatusSubject(w.Cluster, w.ID))
		if err != nil {
			return query.HomeAnswer{}, fmt.Errorf("read the status of workload %s in cluster %q: %w", w.ID, w.Cluster, err)
		}
		if found == nil {
			continue
		}
		_, payload, err := found.Event()
		status, is := payload.(*event.GangStatus)
		if err != nil || !is || status.Workload != w.ID || status.Attempt != w.Attempt {
			continue // of an earlier attempt, or of a dispatcher that this version cannot read
		}
		one := query.HomeStatus{Workload: w.ID, Cluster: w.Cluster, Attempt: w.Attempt, Name: w.ObjectName()}
		// As it is sent: "<" takes six bytes then.
		if encoded, err := json.Marshal(status.Object); err == nil && len(encoded) <= event.MostObjectStatus {
			one.Status = encoded
		}
		answer.Statuses = append(answer.Statuses, one)
	}
	return answer, nil
}

// placed returns a page of the workloads with places whose objects were made in the cluster and move.
func (h homes) placed(ctx context.Context, cluster string, after int64) (query.HomeAnswer, error) {
	answer, err := h.page(ctx, cluster, query.WorkloadsRequest{
		Phases: []workload.Phase{workload.Admitted, workload.Dispatched, workload.Running, workload.Evicting}, After: after,
	})
	answer.Workloads = slices.DeleteFunc(answer.Workloads, func(w workload.Record) bool { return !w.Life.Moves })
	return answer, err
}

// cancelVanished cancels the workload of an object that moves, whose UID is not known any more.
func (h homes) cancelVanished(ctx context.Context, cluster, queue string, envelope event.Envelope, cancel *event.WorkloadCancel) (uint64, error) {
	found, err := h.page(ctx, cluster, query.WorkloadsRequest{IDs: []workload.ID{cancel.Workload}})
	if err != nil {
		return 0, err
	}
	if len(found.Workloads) != 1 || !found.Workloads[0].Life.Moves {
		return 0, fmt.Errorf("workload %.80q is of no object that moves of cluster %q", cancel.Workload, cluster)
	}
	return h.store(ctx, cluster, queue, envelope, cancel)
}
