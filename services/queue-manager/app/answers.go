package app

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/decisions"
	"muster.dev/muster/services/queue-manager/internal/forecast"
	"muster.dev/muster/services/queue-manager/internal/status"
	"muster.dev/muster/services/queue-manager/internal/store"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

// answer serves the questions of people and tools, leader or not.
func answer(ctx context.Context, b *bus.Bus, ledger *store.Store, estimates *forecast.Forecaster, silence time.Duration) error {
	nc := b.Conn()
	if err := answerWorkloads(ctx, b, ledger, estimates); err != nil {
		return err
	}
	if err := query.Handle(ctx, nc, query.HistorySubject, func(ctx context.Context, r query.HistoryRequest) (query.HistoryAnswer, error) {
		answer, err := ledger.History(ctx, r)
		if err != nil {
			return answer, err
		}
		answer.Estimates, err = ledger.PastEstimates(ctx, r.ID, estimate.P50, estimate.P90)
		return answer, err
	}); err != nil {
		return err
	}
	if err := query.Handle(ctx, nc, query.ManifestSubject, ledger.Manifest); err != nil {
		return err
	}
	if err := answerShared(ctx, b, query.QueuesSubject, "the queues", func() (query.QueuesAnswer, error) {
		bounded, cancel := context.WithTimeout(ctx, queuesTimeout)
		defer cancel()
		all, err := ledger.Queues(bounded)
		estimates.FillQueues(all.Queues)
		return all, err
	}); err != nil {
		return err
	}
	if err := query.Handle(ctx, nc, query.AppliedSubject, func(ctx context.Context, _ struct{}) (query.AppliedAnswer, error) {
		return ledger.Applied(ctx)
	}); err != nil {
		return err
	}
	// The dispatchers of all clusters ask that: none keeps the others from their answer.
	if err := answerShared(ctx, b, query.StraysSubject, "the rules for stray pods", func() (query.StraysAnswer, error) {
		bounded, cancel := context.WithTimeout(ctx, queuesTimeout)
		defer cancel()
		return ledger.Strays(bounded)
	}); err != nil {
		return err
	}
	if err := answerReports(ctx, b, ledger, estimates); err != nil {
		return err
	}
	if err := answerShared(ctx, b, query.StatusSubject, "the status", func() (query.StatusAnswer, error) {
		return status.Of(ctx, ledger, b, silence, time.Now()), nil
	}); err != nil {
		return err
	}
	return query.Handle(ctx, nc, query.NodesSubject, func(ctx context.Context, r query.NodesRequest) (query.NodesAnswer, error) {
		answer, err := ledger.Nodes(ctx, r)
		if r.Holders {
			estimates.FillNodes(answer.Nodes)
		}
		return answer, err
	})
}

// answerWorkloads serves the questions about workloads, and what the intakes of further clusters
// submit.
func answerWorkloads(ctx context.Context, b *bus.Bus, ledger *store.Store, estimates *forecast.Forecaster) error {
	nc := b.Conn()
	find := func(ctx context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		page, err := ledger.Workloads(ctx, r)
		estimates.Fill(page.Workloads)
		return page, err
	}
	if err := query.Handle(ctx, nc, query.WorkloadsSubject, find); err != nil {
		return err
	}
	if err := query.HandleHome(ctx, nc, newHomes(b, find).answer); err != nil {
		return err
	}
	carrier, err := query.NewCarrier(ctx, nc)
	if err != nil {
		return err
	}
	if err := query.HandleCarry(ctx, nc, carries{ledger.Workloads, ledger.Carries, carrier.Fetch}.answer); err != nil {
		return err
	}
	return query.HandleTruth(ctx, nc, ledger.Workloads)
}

// answerReports serves the questions that cost more, each one at a time.
func answerReports(ctx context.Context, b *bus.Bus, ledger *store.Store, estimates *forecast.Forecaster) error {
	nc := b.Conn()
	if err := query.HandleEach(ctx, nc, query.WhatIfSubject, newTurns(time.Now).admitWhatIf, estimates.WhatIf); err != nil {
		return err
	}
	if err := query.HandleEach(ctx, nc, query.UsageSubject, oneAtATime[query.UsageRequest]("a report of usage is being made"), func(ctx context.Context, r query.UsageRequest) (query.UsageAnswer, error) {
		return reportUsage(ctx, ledger, r)
	}); err != nil {
		return err
	}
	if err := query.HandleEach(ctx, nc, query.ActivitySubject, oneAtATime[query.ActivityRequest]("the activity of others is being summed"), func(ctx context.Context, r query.ActivityRequest) (query.ActivityAnswer, error) {
		return ledger.Activity(ctx, r, time.Now())
	}); err != nil {
		return err
	}
	return query.HandleEach(ctx, nc, query.DecisionsSubject, oneAtATime[query.DecisionsRequest]("decisions are being read"), func(ctx context.Context, r query.DecisionsRequest) (query.DecisionsAnswer, error) {
		return decisions.Last(ctx, ledger, r)
	})
}

// reportUsage answers from one moment of the history.
func reportUsage(ctx context.Context, ledger *store.Store, r query.UsageRequest) (report query.UsageAnswer, err error) {
	err = ledger.Usage(ctx, func(h *store.UsageHistory) error {
		flavors, err := h.Flavors(ctx)
		if err != nil {
			return err
		}
		report, err = usage.Report(ctx, h, r, flavors, time.Now())
		return err
	})
	return report, err
}

const (
	// maxSharing bounds the callers that wait for the same answers.
	maxSharing = 256
	// queuesTimeout bounds the reading of all queues, or of their rules.
	queuesTimeout = 10 * time.Second
)

// answerShared answers all who ask at once from one answer, which is made with no caller's own
// context: the others wait, too.
func answerShared[Answer any](ctx context.Context, b *bus.Bus, subject, what string, collect func() (Answer, error)) error {
	one := &shared[Answer]{collect: collect}
	admit := atMost[struct{}](maxSharing, fmt.Sprintf("%d others wait for %s", maxSharing, what))
	return query.HandleEach(ctx, b.Conn(), subject, admit, func(asked context.Context, _ struct{}) (Answer, error) { return one.ask(asked) })
}

// oneAtATime lets one question in at a time: each takes connections of Postgres, requests to
// NATS, or a core.
func oneAtATime[Request any](busy string) func(string, Request) (func(), error) {
	return atMost[Request](1, busy)
}

// atMost lets up to a number of questions in at a time.
func atMost[Request any](most int, busy string) func(string, Request) (func(), error) {
	turn := make(chan struct{}, most)
	return func(string, Request) (func(), error) {
		select {
		case turn <- struct{}{}:
			return func() { <-turn }, nil
		default:
			return nil, query.Busy(busy + "; try again")
		}
	}
}
