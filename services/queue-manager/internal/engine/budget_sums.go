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
	// budgetLook bounds all sums of one look: what is left is summed by the next ones.
	budgetLook = 30 * time.Second
)

// budgetSums are what is used of budgets, as far as it is summed. Budgets that are summed up to
// the same time are summed on together, in parts.
type budgetSums struct {
	stored   func(context.Context) (map[string]store.BudgetUse, error)
	reserved func(context.Context, query.UsageRequest) ([]query.UsageRow, error)
	restored bool
	before   map[string]store.BudgetUse // what was stored, from the call that has read it on
	uses     map[string]store.BudgetUse
	turn     int64            // how many parts were begun
	turns    map[string]int64 // the last part of each budget
}

// add sums on until now, for budgetLook at most. What fails, or is left, is summed on by the next
// call; the other sums stay.
func (s *budgetSums) add(ctx context.Context, all []quota.Budget, now time.Time) error {
	failed := s.restore(ctx)
	maps.DeleteFunc(s.uses, func(name string, _ store.BudgetUse) bool { return !slices.Contains(namesOf(all), name) })
	maps.DeleteFunc(s.turns, func(name string, _ int64) bool { return !slices.Contains(namesOf(all), name) })
	for i := range all {
		use := s.use(&all[i], now)
		s.uses[use.Budget] = use
	}
	ctx, cancel := context.WithTimeout(ctx, budgetLook)
	defer cancel()
	failing := map[string]bool{}
	for {
		group := s.next(all, failing, now)
		if len(group) == 0 || ctx.Err() != nil {
			return failed
		}
		err := s.addPart(ctx, group, now)
		if err != nil && ctx.Err() != nil {
			return failed // it was not given its time; it is the first of the next look
		}
		s.turn++
		for _, b := range group {
			s.turns[b.Name] = s.turn
			failing[b.Name] = err != nil
		}
		failed = errors.Join(failed, err)
	}
}

// next returns the budgets that are summed on next: those that are summed up to the same time as
// the one that has waited longest for its turn. Of several the latest goes first. So what takes
// long, or fails, keeps no other from being known.
func (s *budgetSums) next(all []quota.Budget, failing map[string]bool, now time.Time) (group []*quota.Budget) {
	var first *quota.Budget
	for i := range all {
		b := &all[i]
		if failing[b.Name] || !s.uses[b.Name].Upto.Before(now) {
			continue
		}
		if first == nil || s.turns[b.Name] < s.turns[first.Name] ||
			s.turns[b.Name] == s.turns[first.Name] && s.uses[b.Name].Upto.After(s.uses[first.Name].Upto) {
			first = b
		}
	}
	if first == nil {
		return nil
	}
	for i := range all {
		if b := &all[i]; !failing[b.Name] && s.uses[b.Name].Upto.Equal(s.uses[first.Name].Upto) {
			group = append(group, b)
		}
	}
	return group
}

// restore takes over what earlier leaders have summed. Until it succeeds, all is summed again.
func (s *budgetSums) restore(ctx context.Context) error {
	if s.uses == nil {
		s.uses, s.turns = map[string]store.BudgetUse{}, map[string]int64{}
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
	s.restored, s.before = true, stored
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

// addPart sums one part on for budgets that are summed up to the same time.
func (s *budgetSums) addPart(ctx context.Context, group []*quota.Budget, now time.Time) error {
	since := s.uses[group[0].Name].Upto
	request := query.UsageRequest{By: []string{query.ByQueue, query.ByNamespace}, Since: since, Until: since.Add(budgetPart)}
	if request.Until.After(now) {
		request.Until = now
	}
	for _, b := range group {
		place := query.Place{Queue: b.Queue}
		if b.Namespace != "" {
			place.Namespaces = []string{b.Namespace}
		}
		request.Within = append(request.Within, place)
	}
	rows, err := s.reserved(ctx, request)
	if err != nil {
		return fmt.Errorf("sum %d budgets, %s the first, from %s: %w", len(group), group[0].Name, since.Format(time.RFC3339), err)
	}
	for _, b := range group {
		use := s.uses[b.Name]
		use.Upto, use.Hours = request.Until, use.Hours+hoursOf(b, rows)
		s.uses[b.Name] = use
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
