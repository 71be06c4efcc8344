package query

import (
	"context"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// DemandSubject asks what waiting gangs lack that more nodes would give them. The
// queue-manager that leads answers.
const DemandSubject = "muster.query.demand"

// DemandAnswer is the demand as it was computed last.
type DemandAnswer struct {
	// At is when it changed last.
	At time.Time `json:"at"`
	workload.Demand
}

// Demand asks what waiting gangs lack that more nodes would give them.
func (c *Client) Demand(ctx context.Context) (DemandAnswer, error) {
	return ask[DemandAnswer](ctx, c.transport, DemandSubject, struct{}{})
}
