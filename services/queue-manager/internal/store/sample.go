package store

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// sample tries a workload that was made up, through all of a life. When that is
// refused, too, something is wrong with the database and not with what was decided.
func (p *probe) sample(ctx context.Context) error {
	if _, err := p.tx.Exec(ctx, `SAVEPOINT sample`); err != nil {
		return err
	}
	if err := p.tx.QueryRow(ctx, `SELECT coalesce(min(name), '') FROM queues`).Scan(&p.queue); err != nil {
		return err
	}
	if p.queue != "" {
		for _, c := range sampleLife(p.queue, p.epoch, time.Now()) {
			if err := p.try(ctx, c, Record{}); err != nil { // decisions go on without a record
				return err
			}
			if len(p.refused) > 0 {
				return fmt.Errorf("%w: %s: %w", ErrEverything, p.refused[0].Part, p.refused[0].Cause)
			}
		}
	}
	_, err := p.tx.Exec(ctx, `ROLLBACK TO SAVEPOINT sample`)
	return err
}

// sampleLife is an admission and an end of a workload that there is not.
func sampleLife(queue string, epoch int64, now time.Time) []state.Changes {
	record := madeUp(queue, "muster-probe", now)
	id, name := record.ID, record.Name
	traces := func(r workload.Record) ([]state.HistoryRow, []state.Message) {
		return []state.HistoryRow{{Workload: id, At: now, Phase: r.Phase, Attempt: 1, Cluster: r.Cluster}},
			[]state.Message{{ID: name + string(r.Phase), Subject: "muster.probe", At: now, Payload: &event.WorkloadChanged{Record: r}}}
	}
	node := state.NodeRow{Node: capacity.Node{Cluster: record.Cluster, Name: name, Ready: true, Allocatable: resource.List{"cpu": 1}}, Present: true}
	begins := state.Changes{
		Epoch: epoch, Nodes: []state.NodeRow{node},
		Added: []state.Added{{Record: record, Order: sampleOrder, Manifest: []byte(`{}`)}},
		Reserved: []state.Reservation{{
			Workload: id, Attempt: 1, Cluster: record.Cluster, Placement: workload.Placement{PodSet: "probe", Node: name, Pods: 1}, Requests: resource.List{"cpu": 1},
		}},
	}
	begins.History, begins.Messages = traces(record)
	record.Phase, record.Holding, record.Times.Finished = workload.Failed, false, now
	node.Present, node.Drop = false, true
	ends := state.Changes{Epoch: epoch, Freed: []workload.ID{id}, Updated: []workload.Record{record}, Nodes: []state.NodeRow{node}}
	ends.History, ends.Messages = traces(record)
	return []state.Changes{begins, ends}
}

// sampleOrder is no workload's place in the order of submission.
const sampleOrder = -1
