package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/queue-manager/internal/store"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

const (
	// budgetPart is the history of which one sum is: a sum that fails loses no more.
	budgetPart = 24 * time.Hour
	// budgetTimeout bounds one sum.
	budgetTimeout = 10 * time.Second
)

// budgetSums are what is used of budgets, as far as it is summed. Budgets that are summed up to
// the same time are summed on together, in parts.
type budgetSums struct {
	stored   func(context.Context) (map[string]store.BudgetUse, error)
	reserved func(context.Context, query.UsageRequest) ([]query.UsageRow, error)
	restored bool
	uses     map[string]store.BudgetUse
}

// add sums on until now. What fails is tried again by the next call; the other sums stay.
func (s *budgetSums) add(ctx context.Context, all []quota.Budget, now time.Time) error {
	failed := s.restore(ctx)
	maps.DeleteFunc(s.uses, func(name string, _ store.BudgetUse) bool { return !slices.Contains(namesOf(all), name) })
	groups := map[time.Time][]*quota.Budget{}
	for i := range all {
		use := s.use(&all[i], now)
		s.uses[use.Budget] = use
		groups[use.Upto] = append(groups[use.Upto], &all[i])
	}
	// The latest first: what takes long, or fails, keeps nothing from being known.
	for _, upto := range slices.SortedFunc(maps.Keys(groups), func(a, b time.Time) int { return b.Compare(a) }) {
		failed = errors.Join(failed, s.addGroup(ctx, groups[upto], upto, now))
	}
	return failed
}

// restore takes over what earlier leaders have summed. Until it succeeds, all is summed again.
func (s *budgetSums) restore(ctx context.Context) error {
	if s.uses == nil {
		s.uses = map[string]store.BudgetUse{}
	}
	if s.restored {
		return nil
	}
	stored, err := s.stored(ctx)
	if err != nil {
		return err
	}
	for name, use := range stored {
		if use.Upto.After(s.uses[name].Upto) {
			s.uses[name] = use
		}
	}
	s.restored = true
	return nil
}

// use is what is known of a budget in the present period.
func (s *budgetSums) use(of *quota.Budget, now time.Time) store.BudgetUse {
	begins, _ := of.PeriodAt(now)
	use, spec := s.uses[of.Name], specOf(of)
	if use.Spec != spec || !use.Begins.Equal(begins) || use.Upto.After(now) {
		use = store.BudgetUse{Budget: of.Name, Spec: spec, Begins: begins, Upto: begins}
	}
	use.Upto = use.Upto.UTC()
	return use
}

// addGroup sums on, part by part, for budgets that are summed up to the same time.
func (s *budgetSums) addGroup(ctx context.Context, group []*quota.Budget, upto, now time.Time) error {
	request := query.UsageRequest{By: []string{query.ByQueue, query.ByNamespace}}
	for _, b := range group {
		place := query.Place{Queue: b.Queue}
		if b.Namespace != "" {
			place.Namespaces = []string{b.Namespace}
		}
		request.Within = append(request.Within, place)
	}
	for upto.Before(now) {
		request.Since, request.Until = upto, upto.Add(budgetPart)
		if request.Until.After(now) {
			request.Until = now
		}
		rows, err := s.reserved(ctx, request)
		if err != nil {
			return fmt.Errorf("sum %d budgets, %s the first, from %s: %w", len(group), group[0].Name, upto.Format(time.RFC3339), err)
		}
		upto = request.Until
		for _, b := range group {
			use := s.uses[b.Name]
			use.Upto, use.Hours = upto, use.Hours+hoursOf(b, rows)
			s.uses[b.Name] = use
		}
	}
	return nil
}

// reserved sums what was reserved in one moment of the history.
func (l *leader) reserved(ctx context.Context, request query.UsageRequest) (rows []query.UsageRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, budgetTimeout)
	defer cancel()
	err = l.Store.Usage(ctx, func(h *store.UsageHistory) error {
		rows, err = usage.Reserved(ctx, h, request)
		return err
	})
	return rows, err
}

// hoursOf is what rows by queue and namespace have of a budget.
func hoursOf(b *quota.Budget, rows []query.UsageRow) (hours float64) {
	for _, row := range rows {
		if row.Key[0] != b.Queue || b.Namespace != "" && row.Key[1] != b.Namespace {
			continue
		}
		for _, r := range row.Resources {
			if r.Resource == b.Resource {
				hours += r.Reserved / unitOf(r.Resource) / time.Hour.Seconds()
			}
		}
	}
	return hours
}

// unitOf is how much of a resource the hours of a budget are of.
func unitOf(name resource.Name) float64 {
	if resource.InBytes(name) {
		return 1 << 30
	}
	return 1
}

func specOf(b *quota.Budget) string { return fmt.Sprintf("%s/%s %s", b.Namespace, b.Queue, b.Resource) }

func namesOf(all []quota.Budget) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}
