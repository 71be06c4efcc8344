package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/queue-manager/internal/budget"
	"muster.dev/muster/services/queue-manager/internal/store"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

const (
	// budgetStored is how often the use of budgets is stored, beside when one is used up:
	// what a new leader has to sum again.
	budgetStored = 5 * time.Minute
	// budgetTimeout bounds the sum for one budget.
	budgetTimeout = 10 * time.Second
)

// budgets keeps the holds of budgets during a term, beside its loop.
type budgets struct {
	*leader
	configure func(ctx context.Context, origin string, r query.ConfigureRequest) (query.ConfigureAnswer, error)
	uses      map[string]store.BudgetUse
	stored    time.Time
	usedUp    map[string]bool
}

// keepBudgets sums what is used of budgets, and holds queues whose budgets are used up, until
// ctx ends.
func (l *leader) keepBudgets(ctx context.Context, configure func(context.Context, string, query.ConfigureRequest) (query.ConfigureAnswer, error)) {
	b := &budgets{leader: l, configure: configure, usedUp: map[string]bool{}}
	defer l.Metrics.budgets.Reset()
	for ctx.Err() == nil {
		if err := b.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
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
	var failed error
	if b.uses == nil {
		if b.uses, err = b.Store.BudgetUses(ctx); err != nil {
			failed = err // no use is known, and holds end with their periods
		}
	}
	used, uses := map[string]budget.Use{}, []store.BudgetUse{}
	keep := now.Sub(b.stored) >= budgetStored
	b.Metrics.budgets.Reset()
	for i := range policy.Budgets {
		of := &policy.Budgets[i]
		use, err := b.sum(ctx, of, policy.Flavors, now)
		if failed = errors.Join(failed, err); err != nil {
			continue
		}
		uses = append(uses, use)
		used[of.Name] = budget.Use{Begins: use.Begins, Upto: use.Upto, Hours: use.Hours}
		b.Metrics.budgets.WithLabelValues(of.Name, of.Queue).Set(use.Hours / float64(of.Hours))
		if b.noteUsedUp(of, use) {
			keep = true
		}
	}
	if failed == nil {
		b.uses = map[string]store.BudgetUse{}
		for _, use := range uses {
			b.uses[use.Budget] = use
		}
		if keep {
			if failed = b.Store.KeepBudgetUses(ctx, b.epoch, uses); failed == nil {
				b.stored = now
			}
		}
	}
	return errors.Join(failed, b.hold(ctx, policy, used, now))
}

// noteUsedUp reports whether a budget is used up, or is no more, since the last look.
func (b *budgets) noteUsedUp(of *quota.Budget, use store.BudgetUse) bool {
	is := use.Hours >= float64(of.Hours)
	if is == b.usedUp[of.Name] {
		return false
	}
	b.usedUp[of.Name] = is
	if is {
		b.Logger.Warn("a budget is used up", zap.String("budget", of.Name), zap.String("queue", of.Queue), zap.String("action", of.Action),
			zap.Float64("used", use.Hours), zap.Int64("hours", of.Hours))
	}
	return true
}

// sum returns what was used of a budget in the present period: what is known, and what was used
// since.
func (b *budgets) sum(ctx context.Context, of *quota.Budget, flavors []quota.Flavor, now time.Time) (store.BudgetUse, error) {
	begins, _ := of.PeriodAt(now)
	use := b.uses[of.Name]
	if spec := specOf(of); use.Spec != spec || !use.Begins.Equal(begins) || use.Upto.After(now) {
		use = store.BudgetUse{Budget: of.Name, Spec: spec, Begins: begins, Upto: begins}
	}
	if !use.Upto.Before(now) {
		return use, nil
	}
	ctx, cancel := context.WithTimeout(ctx, budgetTimeout)
	defer cancel()
	request := query.UsageRequest{Since: use.Upto, Until: now, Queue: of.Queue, Namespace: of.Namespace, Resources: []resource.Name{of.Resource}}
	err := b.Store.Usage(ctx, func(h *store.UsageHistory) error {
		report, err := usage.Report(ctx, h, request, flavors, now)
		for _, row := range report.Rows {
			for _, r := range row.Resources {
				use.Hours += r.Reserved / unitOf(r.Resource) / time.Hour.Seconds()
			}
		}
		return err
	})
	if err != nil {
		return use, fmt.Errorf("budget %s: %w", of.Name, err)
	}
	use.Upto = now
	return use, nil
}

// unitOf is how much of a resource the hours of a budget are of.
func unitOf(name resource.Name) float64 {
	if resource.InBytes(name) {
		return 1 << 30
	}
	return 1
}

func specOf(b *quota.Budget) string { return fmt.Sprintf("%s/%s %s", b.Namespace, b.Queue, b.Resource) }

// hold makes and ends holds, as changes of the configuration.
func (b *budgets) hold(ctx context.Context, policy quota.Config, used map[string]budget.Use, now time.Time) error {
	hold, end := budget.Decide(policy, used, now)
	if len(hold)+len(end) == 0 {
		return nil
	}
	var request query.ConfigureRequest
	for _, h := range hold {
		manifest, err := manifestOf(h)
		if err != nil {
			return err
		}
		request.Apply = append(request.Apply, manifest)
	}
	for _, name := range end {
		request.Delete = append(request.Delete, kueue.Key{Kind: kueue.BudgetHold, Name: name})
	}
	if _, err := b.configure(ctx, "", request); err != nil {
		return fmt.Errorf("hold %d queues and end %d holds of budgets: %w", len(hold), len(end), err)
	}
	b.Logger.Info("holds of budgets changed", zap.Int("held", len(hold)), zap.Strings("ended", end))
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
