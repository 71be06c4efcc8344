package usage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// mostSteps bounds the steps of one report. An answer is bounded in time, too.
const mostSteps = 5_000_000

// pageOfLives is how many workloads are looked up at a time.
const pageOfLives = 10_000

// History is one moment of the history.
type History interface {
	Earlier
	// Steps visits the steps with usage at or after a time, in their order.
	Steps(ctx context.Context, since time.Time, visit func(Step) error) error
	// Oldest is the time of the oldest step; zero for none.
	Oldest(ctx context.Context) (time.Time, error)
}

// Earlier is what workloads held before a time.
type Earlier interface {
	// Last visits the last step with usage before a time of each of the workloads that
	// have one.
	Last(ctx context.Context, ids []workload.ID, before time.Time, visit func(Step) error) error
	// Holding lists the workloads that hold places.
	Holding(ctx context.Context) ([]workload.ID, error)
	// Live visits steps of workloads that hold places, as their rows have them.
	Live(ctx context.Context, ids []workload.ID, visit func(Step) error) error
}

// Report answers a request from one moment of the history. What the request does not price has
// the prices of the flavors.
func Report(ctx context.Context, h History, request query.UsageRequest, flavors []quota.Flavor, now time.Time) (query.UsageAnswer, error) {
	if err := request.Check(now); err != nil {
		return query.UsageAnswer{}, err
	}
	request.Prices = slices.Concat(request.Prices, pricesOf(flavors, request.Prices))
	if request.Until.IsZero() || request.Until.After(now) {
		request.Until = now
	}
	accounts := New(request)
	steps := 0
	err := h.Steps(ctx, request.Since, func(s Step) error {
		if steps++; steps > mostSteps {
			return fmt.Errorf("the history has more than %d steps since %s: ask for a later time", mostSteps, request.Since.Format(time.RFC3339))
		}
		return accounts.Add(s)
	})
	if err != nil {
		return query.UsageAnswer{}, err
	}
	if err := addEarlier(ctx, h, accounts, request.Since); err != nil {
		return query.UsageAnswer{}, err
	}
	if err := accounts.Close(now); err != nil {
		return query.UsageAnswer{}, err
	}
	oldest, err := h.Oldest(ctx)
	if err != nil {
		return query.UsageAnswer{}, err
	}
	by := append([]string{}, request.By...)
	return query.UsageAnswer{Since: request.Since, Until: request.Until, Oldest: oldest, By: by, Rows: accounts.Rows()}, nil
}

// addEarlier adds what the workloads held when the report begins.
func addEarlier(ctx context.Context, h Earlier, accounts *Accounts, since time.Time) error {
	holding, err := h.Holding(ctx)
	if err != nil {
		return err
	}
	holding = slices.DeleteFunc(holding, accounts.Knows)
	for ids := range slices.Chunk(append(accounts.Unknown(), holding...), pageOfLives) {
		if err := h.Last(ctx, ids, since, accounts.Before); err != nil {
			return err
		}
	}
	// Those of which the history has nothing: they were admitted before it has usage, or
	// longer ago than it is kept.
	holding = slices.DeleteFunc(holding, accounts.Knows)
	for ids := range slices.Chunk(holding, pageOfLives) {
		if err := h.Live(ctx, ids, accounts.Add); err != nil {
			return err
		}
	}
	return nil
}

// pricesOf are the prices of the flavors for resources that have none in the request.
func pricesOf(flavors []quota.Flavor, asked []query.Price) (prices []query.Price) {
	for _, f := range flavors {
		for name, cost := range f.Cost {
			given := func(p query.Price) bool { return p.Resource == name && (p.Flavor == "" || p.Flavor == f.Name) }
			if slices.ContainsFunc(asked, given) {
				continue
			}
			perHour := float64(cost) / 1000
			if resource.InBytes(name) {
				perHour /= 1 << 30
			}
			prices = append(prices, query.Price{Flavor: f.Name, Resource: name, PerHour: perHour})
		}
	}
	return prices
}
