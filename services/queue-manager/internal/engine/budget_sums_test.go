package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/queue-manager/internal/budget"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// used is a history in which each of two queues uses a device all the time, and of which some
// parts cannot be read.
type used struct {
	refuses func(query.UsageRequest) bool
	asked   []time.Duration
}

func (u *used) reserved(_ context.Context, r query.UsageRequest) (rows []query.UsageRow, err error) {
	u.asked = append(u.asked, r.Until.Sub(r.Since))
	if u.refuses(r) {
		return nil, errors.New("it takes too long")
	}
	for _, p := range r.Within {
		rows = append(rows, query.UsageRow{Key: []string{p.Queue, "ns"}, Resources: []query.UsedResource{{Resource: "gpu", Reserved: r.Until.Sub(r.Since).Seconds()}}})
	}
	return rows, nil
}

// TestBudgetsAreSummedInParts: a part that cannot be read stops neither what is summed before it
// nor another budget; nor does it that earlier sums cannot be read.
func TestBudgetsAreSummedInParts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	day, month := now.Truncate(24*time.Hour), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	all := []quota.Budget{{Name: "month", Queue: "a", Resource: "gpu", Period: quota.Month}, {Name: "day", Queue: "b", Resource: "gpu", Period: quota.Day}}
	broken := true
	u := &used{refuses: func(r query.UsageRequest) bool { return broken && r.Since.Equal(month.AddDate(0, 0, 3)) }}
	away := errors.New("Postgres is away")
	s := &budgetSums{reserved: u.reserved, stored: func(context.Context) (map[string]store.BudgetUse, error) { return nil, away }}
	expect := func(what string, monthly, daily float64, upto time.Time) {
		t.Helper()
		m, d := s.uses["month"], s.uses["day"]
		if m.Hours != monthly || d.Hours != daily || !m.Upto.Equal(upto) || !d.Upto.Equal(now) {
			t.Errorf("%s: %+v and %+v, want %.0f hours until %s and %.0f hours", what, m, d, monthly, upto, daily)
		}
	}
	if err := s.add(t.Context(), all, now); !errors.Is(err, away) {
		t.Errorf("it fails with %v", err)
	}
	expect("a part fails", 72, 12, month.AddDate(0, 0, 3))
	if slices.Max(u.asked) > budgetPart {
		t.Errorf("parts of %v are read", u.asked)
	}

	broken = false
	stored := store.BudgetUse{Budget: "month", Spec: specOf(&all[0]), Begins: month, Upto: day, Hours: 1000}
	s.stored = func(context.Context) (map[string]store.BudgetUse, error) {
		return map[string]store.BudgetUse{"month": stored, "gone": {Budget: "gone", Upto: now}}, nil
	}
	if err := s.add(t.Context(), all, now); err != nil {
		t.Fatal(err)
	}
	expect("the stored sums are read", 1012, 12, now)
	if len(s.uses) != 2 {
		t.Errorf("sums of other budgets: %+v", s.uses)
	}
}

// TestARefusedHoldKeepsNoOther: each is a change of its own.
func TestARefusedHoldKeepsNoOther(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var policy quota.Config
	full := map[string]budget.Use{}
	for _, name := range []string{"a", "b"} {
		b := quota.Budget{Name: name, Queue: name, Resource: "gpu", Hours: 1, Period: quota.Day, Action: quota.BudgetHolds}
		policy.Budgets = append(policy.Budgets, b)
		full[name] = budget.Use{Begins: now.Truncate(24 * time.Hour), Upto: now, Hours: 2}
		b.Name = "gone-" + name
		policy.BudgetHolds = append(policy.BudgetHolds, b.Stop(1, now.Add(-time.Hour), now))
	}
	changes, done := 0, 0
	b := &budgets{leader: &leader{Options: Options{Logger: zap.NewNop()}}, configure: func(_ context.Context, _ string, r query.ConfigureRequest) (query.ConfigureAnswer, error) {
		if changes++; changes%2 == 1 {
			return query.ConfigureAnswer{}, errors.New("refused")
		}
		done += len(r.Apply) + len(r.Delete)
		return query.ConfigureAnswer{}, nil
	}}
	if err := b.hold(t.Context(), policy, full, now); err == nil || done != 2 {
		t.Errorf("%d changes are made, %v; want one hold and one end", done, err)
	}
}
