package app

import (
	"context"
	"fmt"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
	"muster.dev/muster/services/dispatcher/internal/reconcile"
)

// carrier implements reconcile.Carrier: objects of other clusters come by way of queue-manager.
type carrier struct {
	cluster string
	queries *query.Client
	client  *kubernetes.Client
}

// Fetch implements reconcile.Carrier.
func (c carrier) Fetch(ctx context.Context, id workload.ID, attempt int, kind, name string) (from string, content *query.CarriedObject, err error) {
	answer, err := c.queries.Carry(ctx, c.cluster, query.CarryRequest{Workload: id, Attempt: attempt, Kind: kind, Name: name})
	if err != nil {
		return "", nil, err
	}
	if answer.Object == nil {
		return "", nil, fmt.Errorf("the answer has no %s %s", kind, name)
	}
	return answer.From, answer.Object, nil
}

// Place implements reconcile.Carrier.
func (c carrier) Place(ctx context.Context, to kubernetes.CarriedCopy) error {
	return c.client.PlaceCarried(ctx, to)
}

// Own implements reconcile.Carrier.
func (c carrier) Own(ctx context.Context, to kubernetes.CarriedCopy) (there bool, err error) {
	return c.client.OwnCarried(ctx, to)
}

// carry has the reconciler copy objects of other clusters, and serves those of this cluster, until
// ctx ends.
func (d *dispatcher) carry(ctx context.Context, reconciler *reconcile.Reconciler) error {
	queries := query.NewClient(d.bus.Conn()).Patient()
	reconciler.SetCarrier(carrier{d.config.Cluster, queries, d.client})
	return query.HandleCarried(ctx, d.bus.Conn(), d.config.Cluster, d.client.ReadCarried)
}
