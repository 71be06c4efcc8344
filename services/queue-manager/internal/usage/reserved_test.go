package usage_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

// history has steps in memory.
type history []usage.Step

func (h history) Within(_ context.Context, since, until time.Time, visit func(usage.Step) error) error {
	for _, s := range h {
		if s.At.Before(since) || !s.At.Before(until) {
			continue
		}
		if err := visit(s); err != nil {
			return err
		}
	}
	return nil
}

func (h history) Steps(ctx context.Context, since time.Time, visit func(usage.Step) error) error {
	return h.Within(ctx, since, at(1e6), visit)
}

func (h history) Later(_ context.Context, from time.Time) (ids []workload.ID, err error) {
	for id, steps := range h.byWorkload() {
		later := slices.DeleteFunc(steps, func(s usage.Step) bool { return s.At.Before(from) })
		if len(later) > 0 && !slices.ContainsFunc(later, func(s usage.Step) bool { return !s.Usage.Since.IsZero() }) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (h history) Last(_ context.Context, ids []workload.ID, before time.Time, visit func(usage.Step) error) error {
	for id, steps := range h.byWorkload() {
		earlier := slices.DeleteFunc(steps, func(s usage.Step) bool { return !s.At.Before(before) })
		if slices.Contains(ids, id) && len(earlier) > 0 {
			if err := visit(earlier[len(earlier)-1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h history) Holding(context.Context) (ids []workload.ID, err error) {
	for id, steps := range h.byWorkload() {
		if len(steps[len(steps)-1].Usage.Held) > 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (history) Live(context.Context, []workload.ID, func(usage.Step) error) error { return nil }

func (history) Oldest(context.Context) (time.Time, error) { return time.Time{}, nil }

func (h history) byWorkload() map[workload.ID][]usage.Step {
	all := map[workload.ID][]usage.Step{}
	for _, s := range h {
		all[s.Workload] = append(all[s.Workload], s)
	}
	return all
}

// TestPartsAddUp: what was reserved in the parts of a time is what was in all of it.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h history
		for _, id := range []workload.ID{"a", "b", "c"} {
			minute := float64(rapid.IntRange(0, 60).Draw(t, "begins"))
			first := step(minute, workload.Admitted, 1, 2, since(minute))
			first.Workload = id
			h = append(h, first)
			for i := range rapid.IntRange(0, 4).Draw(t, "steps") {
				minute += float64(rapid.IntRange(1, 60).Draw(t, "later"))
				next := step(minute, workload.Running, 1, int64(rapid.IntRange(1, 4).Draw(t, "holds")))
				if i == 3 {
					next = step(minute, workload.Succeeded, 1, 0)
				}
				next.Workload = id
				h = append(h, next)
			}
		}
		slices.SortStableFunc(h, func(a, b usage.Step) int { return a.At.Compare(b.At) })
		end := at(400)
		report, err := usage.Report(t.Context(), h, query.UsageRequest{Since: day, Until: end}, nil, end)
		if err != nil {
			t.Fatal(err)
		}
		parts := 0.0
		for from := day; from.Before(end); from = from.Add(50 * time.Minute) {
			rows, err := usage.Reserved(t.Context(), h, query.UsageRequest{Since: from, Until: from.Add(50 * time.Minute)})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				parts += row.Resources[0].Reserved
			}
		}
		if all := report.Rows[0].Resources[0].Reserved; math.Abs(all-parts) > 1e-6 {
			t.Errorf("in parts it is %.0f s, in all %.0f s", parts, all)
		}
	})
}
