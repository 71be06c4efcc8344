package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// change is a request to the loop of the term for another configuration.
type change struct {
	origin  string
	request query.ConfigureRequest
	answer  chan<- configured
}

type configured struct {
	answer query.ConfigureAnswer
	err    error
}

// errUnclear means that a change may or may not have been committed.
var errUnclear = errors.New("the change may or may not be stored; apply it again, which changes nothing if it is")

func (l *leader) serveChanges(ctx context.Context, group *errgroup.Group) error {
	pass := func(asking context.Context, origin string, r query.ConfigureRequest) (query.ConfigureAnswer, error) {
		answer := make(chan configured, 1)
		pass(asking, l.changes, change{origin, r, answer})
		select {
		case got := <-answer:
			return got.answer, got.err
		case <-asking.Done():
			return query.ConfigureAnswer{}, errUnclear
		case <-ctx.Done():
			return query.ConfigureAnswer{}, errUnclear
		}
	}
	group.Go(func() error {
		l.keepBudgets(ctx, pass)
		return ctx.Err()
	})
	err := query.HandleHold(ctx, l.Bus.Conn(), func(asking context.Context, r query.HoldRequest) (query.ConfigureAnswer, error) {
		change, err := r.ConfigureRequest(time.Now())
		if err != nil {
			return query.ConfigureAnswer{}, err
		}
		return pass(asking, "", change)
	})
	if err != nil {
		return err
	}
	return query.HandleConfigure(ctx, l.Bus.Conn(), pass)
}

// configure applies a change: first to Postgres, then to memory. What was decided before
// is written first, and what is decided next obeys it. When it is not known whether
// Postgres has it the term ends.
func (l *leader) configure(ctx context.Context, c change) error {
	plan, err := l.File.Plan(l.applied, c.origin, c.request, l.state.LiveByQueue(), time.Now())
	if err != nil || plan.Empty() || c.request.DryRun {
		c.answer <- configured{query.ConfigureAnswer{Version: l.state.Version(), Objects: plan.Outcomes}, err}
		return nil
	}
	if err := l.commits.flush(ctx, l.epoch); err != nil {
		c.answer <- configured{err: errUnclear}
		return err
	}
	version := l.state.Version() + 1
	written := make([]store.Written, len(plan.Written))
	for i, w := range plan.Written {
		w.Version = version
		plan.Set[w.Key] = w
		written[i] = store.Written{Key: w.Key, Manifest: w.Manifest}
	}
	settings, err := l.Store.Configure(ctx, l.epoch, store.Configuration{
		Settings: plan.Settings, Version: version, Origin: c.origin, Written: written, Removed: plan.Removed,
	})
	if store.Suspect(err) { // nothing of it is stored, and nothing in memory has changed
		l.Metrics.notStorable.WithLabelValues("configuration").Inc()
		l.Logger.Error("cannot store a change of the configuration; it is refused", zap.String("origin", c.origin), zap.Error(err))
		c.answer <- configured{err: fmt.Errorf("the database refuses to store the change; nothing has changed: %w", err)}
		return nil
	}
	if err != nil {
		c.answer <- configured{err: errUnclear}
		return err
	}
	l.applied = plan.Set
	l.do(decisionlog.Input{Kind: decisionlog.Configure, Settings: &settings, Version: version})
	l.do(decisionlog.Input{Kind: decisionlog.CheckRights})
	l.Logger.Info("configuration changed", zap.String("origin", c.origin), zap.Int64("version", version),
		zap.Int("written", len(plan.Written)), zap.Int("removed", len(plan.Removed)))
	c.answer <- configured{answer: query.ConfigureAnswer{Version: version, Objects: plan.Outcomes}}
	return nil
}
