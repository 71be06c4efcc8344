package budget_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/services/queue-manager/internal/budget"
)

// apply makes and ends holds as the configuration does.
func apply(c quota.Config, hold []quota.BudgetStop, end []string) quota.Config {
	c.BudgetHolds = slices.DeleteFunc(slices.Clone(c.BudgetHolds), func(h quota.BudgetStop) bool {
		return slices.Contains(end, h.Name) || slices.ContainsFunc(hold, func(other quota.BudgetStop) bool { return other.Name == h.Name })
	})
	c.BudgetHolds = append(c.BudgetHolds, hold...)
	return c
}

// TestHoldsOfBudgets: a queue is held while its budget is known to be used up, and no longer than
// its period, also when what was used cannot be read any more.
func TestHoldsOfBudgets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		b := quota.Budget{
			Name: "b", Queue: "q", Resource: "nvidia.com/gpu", Hours: 100, Period: rapid.SampledFrom([]string{quota.Day, quota.Week, quota.Month}).Draw(t, "period"),
			Action: rapid.SampledFrom([]string{quota.BudgetWarns, quota.BudgetHolds}).Draw(t, "action"),
		}
		c := quota.Config{Budgets: []quota.Budget{b}}
		hours := 0.0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before, _ := c.Budgets[0].PeriodAt(now)
			now = now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "hours later")) * time.Hour)
			begins, until := c.Budgets[0].PeriodAt(now)
			if !begins.Equal(before) {
				hours = 0
			}
			hours += rapid.Float64Range(0, 60).Draw(t, "used")
			if rapid.IntRange(0, 9).Draw(t, "raise") == 0 {
				c.Budgets[0].Hours += 50
			}
			known := rapid.IntRange(0, 4).Draw(t, "known") > 0
			used := map[string]budget.Use{}
			if known {
				used["b"] = budget.Use{Begins: begins, Upto: now, Hours: hours}
			}
			was := len(c.BudgetHolds) > 0
			c = apply(c, first(budget.Decide(c, used, now)), second(budget.Decide(c, used, now)))
			over := c.Budgets[0].Action == quota.BudgetHolds && hours >= float64(c.Budgets[0].Hours)
			held := len(c.BudgetHolds) > 0
			switch {
			case known && held != over:
				t.Fatalf("with %.0f of %d hours used it is held: %v", hours, c.Budgets[0].Hours, held)
			case !known && held && !was:
				t.Fatalf("it is held, and what was used is not known")
			case !known && was && begins.Equal(before) && !held && c.Budgets[0].Action == quota.BudgetHolds:
				t.Fatalf("it is not held any more, and what was used is not known")
			case held && (!c.BudgetHolds[0].Until.Equal(until) || known && c.BudgetHolds[0].Hours != c.Budgets[0].Hours):
				t.Fatalf("the hold is %+v, of a period until %s and %d hours", c.BudgetHolds[0], until, c.Budgets[0].Hours)
			}
			if hold, end := budget.Decide(c, used, now); len(hold)+len(end) > 0 {
				t.Fatalf("decided again there is more: %+v, %v", hold, end)
			}
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		c.Budgets = nil
		if c = apply(c, first(budget.Decide(c, nil, now)), second(budget.Decide(c, nil, now))); len(c.BudgetHolds) > 0 {
			t.Fatalf("without its budget the queue is held: %+v", c.BudgetHolds)
		}
	})
}

func first(hold []quota.BudgetStop, _ []string) []quota.BudgetStop { return hold }

func second(_ []quota.BudgetStop, end []string) []string { return end }
