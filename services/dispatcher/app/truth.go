package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/reconcile"
)

const (
	// truthWithin bounds a question, of the time that both questions of truthOf have.
	truthWithin = 2 * time.Second
	// earlierFor is how long the question of an earlier version is asked alone once it was answered.
	earlierFor = time.Minute
)

// truthOf asks queue-manager for workloads, live and finished, as they concern a cluster. A
// queue-manager or accounts.conf of an earlier version has another question, about workloads of all
// clusters, to which the present accounts.conf gives no right.
func truthOf(b *bus.Bus, cluster string) reconcile.Truth {
	queries := query.NewClient(b.Conn()).Patient()
	var earlier atomic.Pointer[time.Time] // until when the other question is asked
	return func(ctx context.Context, id workload.ID) (*workload.Record, error) {
		if until := earlier.Load(); until == nil || time.Now().After(*until) {
			bounded, cancel := context.WithTimeout(ctx, truthWithin)
			answer, err := queries.Truth(bounded, cluster, id)
			cancel()
			if err == nil {
				return answer.Workload.Record(cluster), nil
			}
			if !errors.Is(err, query.ErrNoAnswer) && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
				return nil, err
			}
		}
		answer, err := queries.Workloads(ctx, query.WorkloadsRequest{ID: id})
		if err != nil {
			return nil, err
		}
		until := time.Now().Add(earlierFor)
		earlier.Store(&until)
		if len(answer.Workloads) == 0 {
			return nil, nil
		}
		return query.TruthOf(cluster, answer.Workloads[0]).Record(cluster), nil
	}
}
