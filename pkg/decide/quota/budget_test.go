package quota_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

func TestPeriodsOfBudgets(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 23, 30, 0, 0, time.FixedZone("west", -2*3600)) // 29th, a Sunday, 01:30 UTC
	for period, want := range map[string]string{
		quota.Day: "2026-11-29 2026-11-30", quota.Week: "2026-11-23 2026-11-30", quota.Month: "2026-11-01 2026-12-01",
	} {
		t.Run(period, func(t *testing.T) {
			b := quota.Budget{Period: period}
			begin, end := b.PeriodAt(at)
			if got := begin.Format(time.DateOnly) + " " + end.Format(time.DateOnly); got != want || at.Before(begin) || !at.Before(end) {
				t.Errorf("%s is %s, want %s", period, got, want)
			}
			if next, _ := b.PeriodAt(end); !next.Equal(end) {
				t.Errorf("behind the end %s the period begins at %s", end, next)
			}
		})
	}
}

// TestABudgetHoldsItsQueue: with the reason in figures, in the namespace that it is of; an
// operator's hold comes first.
func TestABudgetHoldsItsQueue(t *testing.T) {
	t.Parallel()
	b := quota.Budget{Name: "gpus", Queue: "x", Namespace: "a", Resource: "nvidia.com/gpu", Hours: 1000, Period: quota.Month, Action: quota.BudgetHolds}
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	_, end := b.PeriodAt(now)
	c := quota.Config{Budgets: []quota.Budget{b}, BudgetHolds: []quota.BudgetStop{b.Stop(1000, now, end)}}
	tree, err := quota.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tree.HeldBy("a", "x", "x"), "budget of queue x: used 1,000 of 1,000 GPU-hours until 2026-12-01"; got != want {
		t.Errorf("the queue is held by %q, want %q", got, want)
	}
	for _, other := range [][2]string{{"b", "x"}, {"a", "y"}} {
		if got := tree.HeldBy(other[0], other[1], other[1]); got != "" {
			t.Errorf("%v is held by %q", other, got)
		}
	}
	if held := c.Held(); len(held) != 1 || tree.StoppedBy("a", "x") != nil {
		t.Errorf("held are %q, and an operator holds %v", held, tree.StoppedBy("a", "x"))
	}
	if resumed := c.Resumed("a", "x", "x"); len(resumed.BudgetHolds) != 0 || len(c.BudgetHolds) != 1 {
		t.Errorf("resumed: %+v", resumed.BudgetHolds)
	}
}

func TestBudgetsAreChecked(t *testing.T) {
	t.Parallel()
	good := quota.Budget{Name: "b", Queue: "q", Resource: "cpu", Hours: 1, Period: quota.Day, Action: quota.BudgetWarns}
	for want, change := range map[string]func(*quota.Budget){
		"":                           func(*quota.Budget) {},
		"queue: is missing":          func(b *quota.Budget) { b.Queue = "" },
		"resource: is missing":       func(b *quota.Budget) { b.Resource = "" },
		"hours: 0: want 1 to":        func(b *quota.Budget) { b.Hours = 0 },
		"period: is missing":         func(b *quota.Budget) { b.Period = "" },
		`period: "Year"`:             func(b *quota.Budget) { b.Period = "Year" },
		`action: "Evict"`:            func(b *quota.Budget) { b.Action = "Evict" },
		"queueNamespace: \"a\\nb\":": func(b *quota.Budget) { b.Namespace = "a\nb" },
		"budgets[0].name: is mi":     func(b *quota.Budget) { b.Name = "" },
	} {
		t.Run(want, func(t *testing.T) {
			b := good
			change(&b)
			c := quota.Config{Budgets: []quota.Budget{b}}
			if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", b, err, want)
			}
		})
	}
}
