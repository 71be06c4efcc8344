package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// carries answers the dispatchers of clusters that need an object of another cluster. What passes
// through is not stored and not logged.
type carries struct {
	find func(context.Context, query.WorkloadsRequest) (query.WorkloadsAnswer, error)
	// of returns what a queue carries.
	of func(ctx context.Context, queue string) ([]workload.Carried, error)
	// fetch asks the dispatcher of a cluster for an object.
	fetch func(ctx context.Context, cluster string, wanted query.CarriedWanted) (*query.CarriedObject, error)
}

// answer answers the dispatcher of a cluster: only about workloads that have their places there, and
// only with what their queue carries.
func (c carries) answer(ctx context.Context, cluster string, r query.CarryRequest) (query.CarryAnswer, error) {
	if r.Workload == "" {
		return query.CarryAnswer{}, errors.New("the request names no workload; want its id")
	}
	page, err := c.find(ctx, query.WorkloadsRequest{ID: r.Workload})
	if err != nil {
		return query.CarryAnswer{}, err
	}
	none := func(w workload.Record) bool { return !w.Holding || w.Cluster != cluster || w.Attempt != r.Attempt }
	if len(page.Workloads) == 0 || none(page.Workloads[0]) {
		return query.CarryAnswer{}, fmt.Errorf("attempt %d of workload %.80q has no places in cluster %q", r.Attempt, r.Workload, cluster)
	}
	w := page.Workloads[0]
	list, err := c.of(ctx, w.Queue)
	if err != nil {
		return query.CarryAnswer{}, err
	}
	i := slices.IndexFunc(list, func(one workload.Carried) bool {
		return one.Kind == r.Kind && one.Name == r.Name && one.From != cluster
	})
	if i < 0 {
		return query.CarryAnswer{}, fmt.Errorf("queue %q carries no %.80s %.260q to cluster %q", w.Queue, r.Kind, r.Name, cluster)
	}
	from := list[i].From
	object, err := c.fetch(ctx, from, query.CarriedWanted{Kind: r.Kind, Namespace: w.Namespace, Name: r.Name})
	if err != nil {
		return query.CarryAnswer{}, fmt.Errorf("%s %s/%s: %w", r.Kind, w.Namespace, r.Name, err)
	}
	return query.CarryAnswer{From: from, Object: object}, nil
}
