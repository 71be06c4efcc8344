package engine

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/journal"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// change asks the term's goroutine for another configuration.
type change struct {
	origin  string
	request query.ConfigureRequest
	answer  chan<- configured
}

type configured struct {
	answer query.ConfigureAnswer
	err    error
}

// errUnclear is told when it is not known whether a change has been committed.
var errUnclear = errors.New("it is not known whether the change is stored: apply it again, which changes nothing when it is")

func (e *engine) serveChanges(ctx context.Context) error {
	return query.HandleConfigure(ctx, e.Bus.Conn(), func(asking context.Context, origin string, r query.ConfigureRequest) (query.ConfigureAnswer, error) {
		answer := make(chan configured, 1)
		pass(asking, e.changes, change{origin, r, answer})
		select {
		case got := <-answer:
			return got.answer, got.err
		case <-asking.Done():
			return query.ConfigureAnswer{}, errUnclear
		case <-ctx.Done():
			return query.ConfigureAnswer{}, errUnclear
		}
	})
}

// configure brings the configuration to what is asked for: into Postgres first,
// then into memory. Whatever was decided before is written first, and whatever is
// decided next obeys it. When it is not known whether that was done the term ends.
func (e *engine) configure(ctx context.Context, c change, epoch int64) error {
	plan, err := e.File.Plan(e.applied, c.origin, c.request, e.book.Places())
	if err != nil || plan.Empty() || c.request.DryRun {
		c.answer <- configured{query.ConfigureAnswer{Version: e.book.Version(), Objects: plan.Outcomes}, err}
		return nil
	}
	if err := e.commits.flush(ctx, epoch); err != nil {
		c.answer <- configured{err: errUnclear}
		return err
	}
	version := e.book.Version() + 1
	written := make([]store.Written, len(plan.Written))
	for i, w := range plan.Written {
		w.Version = version
		plan.Set[w.Key] = w
		written[i] = store.Written{Key: w.Key, Manifest: w.Manifest}
	}
	governs, err := e.Store.Configure(ctx, epoch, store.Configuration{
		Settings: plan.Settings, Version: version, Origin: c.origin, Written: written, Removed: plan.Removed,
	})
	if store.Suspect(err) { // nothing of it is stored, and nothing in memory has changed
		e.Metrics.setAside.WithLabelValues("configuration").Inc()
		e.Logger.Error("a change of the configuration is refused by the database", zap.String("origin", c.origin), zap.Error(err))
		c.answer <- configured{err: fmt.Errorf("the database refuses to store the change; nothing has changed: %w", err)}
		return nil
	}
	if err != nil {
		c.answer <- configured{err: errUnclear}
		return err
	}
	e.applied = plan.Set
	e.do(journal.Input{Kind: journal.Govern, Settings: &governs, Version: version})
	e.do(journal.Input{Kind: journal.CheckRights})
	e.Logger.Info("configuration changed", zap.String("origin", c.origin), zap.Int64("version", version),
		zap.Int("written", len(plan.Written)), zap.Int("removed", len(plan.Removed)))
	c.answer <- configured{answer: query.ConfigureAnswer{Version: version, Objects: plan.Outcomes}}
	return nil
}
