package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/services/queue-manager/internal/budget"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const (
	// budgetStored is how often the use of budgets is stored, beside when one is used up:
	// what a new leader has to sum again.
	budgetStored = 5 * time.Minute
	// announceTimeout bounds the publication of an event about a budget.
	announceTimeout = 5 * time.Second
)

// budgets keeps the holds of budgets during a term, beside its loop.
type budgets struct {
	*leader
	configure func(ctx context.Context, origin string, r query.ConfigureRequest) (query.ConfigureAnswer, error)
	publish   func(ctx context.Context, subject, id string, payload event.Payload) error
	sums      budgetSums
	stored    time.Time
	usedUp    map[string]bool // those of which an event reports it
}

// keepBudgets sums what is used of budgets, and holds queues whose budgets are used up, until
// ctx ends.
func (l *leader) keepBudgets(ctx context.Context, configure func(context.Context, string, query.ConfigureRequest) (query.ConfigureAnswer, error)) {
	b := &budgets{leader: l, configure: configure, publish: l.publish, sums: budgetSums{stored: l.Store.BudgetUses, reserved: l.reserved}, usedUp: map[string]bool{}}
	defer l.Metrics.budgets.Reset()
	for ctx.Err() == nil {
		if err := b.look(ctx, time.Now().UTC().Truncate(time.Microsecond)); err != nil && ctx.Err() == nil {
			l.Logger.Warn("cannot check budgets", zap.Error(err))
		}
		_ = pause.For(ctx, l.BudgetInterval) // the loop looks at the context
	}
}

// look checks all budgets once. A panic ends this look only: the leader goes on.
func (b *budgets) look(ctx context.Context, now time.Time) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	policy, err := b.Store.Policy(ctx)
	if err != nil {
		return err
	}
	if len(policy.Budgets)+len(policy.BudgetHolds) == 0 {
		b.Metrics.budgets.Reset()
		return nil
	}
	failed := b.sums.add(ctx, policy.Budgets, now)
	b.restoreAnnounced(policy.Budgets)
	used, changed, unannounced := b.note(ctx, policy.Budgets, now)
	if changed || failed != nil || now.Sub(b.stored) >= budgetStored { // what was summed before a failure need not be summed again
		uses := maps.Clone(b.sums.uses)
		for _, name := range unannounced {
			delete(uses, name) // a later leader takes what is stored as announced
		}
		err := b.Store.KeepBudgetUses(ctx, b.epoch, slices.Collect(maps.Values(uses)), namesOf(policy.Budgets))
		if err == nil {
			b.stored = now
		}
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, b.hold(ctx, policy, used, now))
}

// restoreAnnounced takes over, once, which budgets an earlier leader has announced as used up.
func (b *budgets) restoreAnnounced(all []quota.Budget) {
	for i := range all {
		of := &all[i]
		before, known := b.sums.before[of.Name]
		if use := b.sums.uses[of.Name]; known && before.Spec == use.Spec && before.Begins.Equal(use.Begins) && before.Hours >= float64(of.Hours) {
			b.usedUp[of.Name] = true
		}
	}
	b.sums.before = nil
}

// note returns the uses that are known, whether a budget is used up or is no more since the last
// look, and the names of those of which it could not be announced.
func (b *budgets) note(ctx context.Context, all []quota.Budget, now time.Time) (used map[string]budget.Use, changed bool, unannounced []string) {
	used = map[string]budget.Use{}
	b.Metrics.budgets.Reset()
	for i := range all {
		of := &all[i]
		use := b.sums.uses[of.Name]
		is := use.Hours >= float64(of.Hours)
		if !use.Upto.Equal(now) && !is {
			continue // there may be more
		}
		used[of.Name] = budget.Use{Begins: use.Begins, Upto: use.Upto, Hours: use.Hours}
		b.Metrics.budgets.WithLabelValues(of.Name, of.Queue).Set(use.Hours / float64(of.Hours))
		switch {
		case is == b.usedUp[of.Name]:
		case !is:
			delete(b.usedUp, of.Name)
			changed = true
		case len(unannounced) > 0 || !b.announce(ctx, of, use, now): // after one failure the others wait for the next look
			unannounced = append(unannounced, of.Name)
		default:
			b.usedUp[of.Name], changed = true, true
		}
	}
	return used, changed, unannounced
}

// announce publishes that a budget is used up, and reports whether that is stored.
func (b *budgets) announce(ctx context.Context, of *quota.Budget, use store.BudgetUse, now time.Time) bool {
	_, until := of.PeriodAt(now)
	stop := of.Stop(int64(use.Hours), now, until)
	fields := []zap.Field{zap.String("budget", of.Name), zap.String("queue", of.Queue), zap.String("action", of.Action), zap.Float64("used", use.Hours), zap.Int64("hours", of.Hours)}
	// NATS drops a repetition, also by the next leader.
	id := fmt.Sprintf("queue-manager/budget/%s/%d/%d", of.Name, use.Begins.Unix(), of.Hours)
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	err := b.publish(ctx, event.EventsSubject(of.Queue, ""), id, &event.BudgetUsedUp{
		Budget: of.Name, Queue: of.Queue, Namespace: of.Namespace, Resource: of.Resource, Period: of.Period, Action: of.Action,
		Hours: of.Hours, Used: use.Hours, Until: until, Message: stop.Message(),
	})
	if err != nil {
		b.Logger.Warn("cannot publish that a budget is used up", append(fields, zap.Error(err))...)
		return false
	}
	b.Logger.Warn("a budget is used up", fields...)
	return true
}

// hold makes and ends holds, as changes of the configuration: one by one, so that one that is
// refused keeps none of the others.
func (b *budgets) hold(ctx context.Context, policy quota.Config, used map[string]budget.Use, now time.Time) (failed error) {
	hold, end := budget.Decide(policy, used, now)
	for _, h := range hold {
		manifest, err := manifestOf(h)
		if err == nil {
			err = b.change(ctx, "hold", h.Name, query.ConfigureRequest{Apply: []json.RawMessage{manifest}})
		}
		failed = errors.Join(failed, err)
	}
	for _, name := range end {
		request := query.ConfigureRequest{Delete: []kueue.Key{{Kind: kueue.BudgetHold, Name: name}}}
		failed = errors.Join(failed, b.change(ctx, "end the hold", name, request))
	}
	return failed
}

func (b *budgets) change(ctx context.Context, what, name string, request query.ConfigureRequest) error {
	if _, err := b.configure(ctx, "", request); err != nil {
		return fmt.Errorf("%s of budget %s: %w", what, name, err)
	}
	b.Logger.Info("holds of budgets changed", zap.String("budget", name), zap.String("change", what))
	return nil
}

// manifestOf writes a hold as an object of the configuration.
func manifestOf(h quota.BudgetStop) (json.RawMessage, error) {
	spec := map[string]any{"queue": h.Queue, "resource": h.Resource, "hours": h.Hours, "used": h.Used, "since": h.Since, "until": h.Until}
	if h.Namespace != "" {
		spec["queueNamespace"] = h.Namespace
	}
	manifest, err := json.Marshal(map[string]any{"apiVersion": "muster.dev/v1beta1", "kind": kueue.BudgetHold, "metadata": map[string]string{"name": h.Name}, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("write the hold of budget %s: %w", h.Name, err)
	}
	return manifest, nil
}
