package usage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Part is one moment of the history of which a part is read.
type Part interface {
	Earlier
	// Within visits the steps with usage from a time until another, in their order.
	Within(ctx context.Context, since, until time.Time, visit func(Step) error) error
	// Later lists the workloads whose first step at or after a time is not their first of all.
	Later(ctx context.Context, from time.Time) ([]workload.ID, error)
}

// Reserved sums what was reserved from the Since of a request until its Until, which has passed.
// Unlike Report it reads no step behind that, so the parts of a long time cost about as much as
// all of it. What was lost or idle is not known here.
func Reserved(ctx context.Context, h Part, request query.UsageRequest) ([]query.UsageRow, error) {
	if err := request.Check(request.Until); err != nil {
		return nil, err
	}
	accounts := New(request)
	steps := 0
	err := h.Within(ctx, request.Since, request.Until, func(s Step) error {
		if steps++; steps > mostSteps {
			return fmt.Errorf("the history has more than %d steps from %s until %s", mostSteps, request.Since.Format(time.RFC3339), request.Until.Format(time.RFC3339))
		}
		return accounts.Add(s)
	})
	if err != nil {
		return nil, err
	}
	later, err := h.Later(ctx, request.Until)
	if err != nil {
		return nil, err
	}
	later = slices.DeleteFunc(later, accounts.Knows) // they held the same all the time
	for ids := range slices.Chunk(later, pageOfLives) {
		if err := h.Last(ctx, ids, request.Since, accounts.Before); err != nil {
			return nil, err
		}
	}
	if err := addEarlier(ctx, h, accounts, request.Since); err != nil {
		return nil, err
	}
	if err := accounts.Close(request.Until); err != nil {
		return nil, err
	}
	return accounts.Rows(), nil
}
