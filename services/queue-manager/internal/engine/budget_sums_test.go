package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
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

// TestALookAtBudgetsIsBounded: sums that take long take no more than their time in one look, and
// take turns over the looks, so that each is summed in the end, beside some that never succeed.
func TestALookAtBudgetsIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		before := map[string]store.BudgetUse{}
		var all []quota.Budget
		for i := range 20 {
			b := quota.Budget{Name: fmt.Sprintf("b%02d", i), Queue: fmt.Sprintf("q%02d", i), Resource: "gpu", Period: quota.Month}
			begins, _ := b.PeriodAt(now)
			all = append(all, b)
			before[b.Name] = store.BudgetUse{Budget: b.Name, Spec: specOf(&b), Begins: begins, Upto: begins.Add(time.Duration(i) * time.Hour)}
		}
		late := func(place query.Place) bool { return place.Queue > "q09" } // half of them, and the first of each look
		s := &budgetSums{
			stored: func(context.Context) (map[string]store.BudgetUse, error) { return before, nil },
			reserved: func(ctx context.Context, r query.UsageRequest) ([]query.UsageRow, error) {
				takes := 9 * time.Second
				if slices.ContainsFunc(r.Within, late) {
					takes = time.Hour
				}
				ctx, cancel := context.WithTimeout(ctx, budgetTimeout)
				defer cancel()
				select {
				case <-time.After(takes):
					return nil, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
		}
		looks := 0
		for ; looks < 300; looks++ {
			began := time.Now()
			_ = s.add(t.Context(), all, now) // half of them fail
			if took := time.Since(began); took > time.Minute {
				t.Fatalf("look %d takes %s, want at most a minute", looks, took)
			}
			if !slices.ContainsFunc(all[:10], func(b quota.Budget) bool { return !s.uses[b.Name].Upto.Equal(now) }) {
				return
			}
		}
		t.Errorf("after %d looks the sums are %+v", looks, s.uses)
	})
}

// TestThatABudgetIsUsedUpIsPublishedOnce: also when the first publication fails, and by the next leader.
func TestThatABudgetIsUsedUpIsPublishedOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	all := []quota.Budget{
		{Name: "warns", Queue: "a", Namespace: "ns", Resource: "gpu", Hours: 10, Period: quota.Day, Action: quota.BudgetWarns},
		{Name: "free", Queue: "b", Resource: "gpu", Hours: 100, Period: quota.Day, Action: quota.BudgetWarns},
	}
	use := func(hours float64) map[string]store.BudgetUse {
		uses := map[string]store.BudgetUse{}
		for i := range all {
			uses[all[i].Name] = store.BudgetUse{Budget: all[i].Name, Spec: specOf(&all[i]), Begins: now.Truncate(24 * time.Hour), Upto: now, Hours: hours}
		}
		return uses
	}
	var announced []*event.BudgetUsedUp
	var fails error
	begin := func(stored map[string]store.BudgetUse) *budgets {
		return &budgets{
			leader: &leader{Options: Options{Logger: zap.NewNop(), Metrics: NewMetrics(prometheus.NewRegistry())}}, usedUp: map[string]bool{},
			publish: func(_ context.Context, subject, _ string, p event.Payload) error {
				if fails != nil {
					return fails
				}
				if subject != "muster.events.a._" {
					t.Errorf("it was published on %s", subject)
				}
				announced = append(announced, p.(*event.BudgetUsedUp))
				return nil
			},
			sums: budgetSums{before: stored, uses: use(12.5)},
		}
	}
	look := func(what string, b *budgets, want int, wantUnannounced ...string) {
		t.Helper()
		b.restoreAnnounced(all)
		used, _, unannounced := b.note(t.Context(), all, now)
		if len(announced) != want || !slices.Equal(unannounced, wantUnannounced) || len(used) != 2 {
			t.Errorf("%s: %d events, want %d; not announced are %v, want %v; known are %v", what, len(announced), want, unannounced, wantUnannounced, used)
		}
	}
	b := begin(nil)
	fails = errors.New("NATS is away")
	look("NATS is away", b, 0, "warns")
	fails = nil
	look("NATS is back", b, 1)
	look("the next look", b, 1)
	look("the next leader", begin(use(12)), 1)
	all[0].Hours = 12
	look("a smaller budget", begin(use(11)), 2)
	want := &event.BudgetUsedUp{
		Budget: "warns", Queue: "a", Namespace: "ns", Resource: "gpu", Period: quota.Day, Action: quota.BudgetWarns, Hours: 10, Used: 12.5,
		Until: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Message: "budget of queue a: used 12 of 10 hours of gpu until 2026-11-21",
	}
	if diff := cmp.Diff(want, announced[0]); diff != "" {
		t.Error(diff)
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
