// Package budget decides which queues are held because their budgets are used up. What was used
// comes from the history of the ledger (package usage), and the holds go into the configuration
// as those of operators do, so that they are recorded, stored and replayed with it.
//
//	budgets, use, holds --> Decide --> holds to make and to end
//
// It is pure: the leader (package engine) measures, and makes the holds.
package budget

import (
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// Use is what was used of a budget since the beginning of a period.
type Use struct {
	Begins, Upto time.Time
	Hours        float64
}

// Decide returns the holds that are missing or say something else, and the names of those that
// are to end. A use that is not of the present period, or missing, is not known: a hold then
// stays until its period ends, and none begins.
func Decide(policy quota.Config, used map[string]Use, now time.Time) (hold []quota.BudgetStop, end []string) {
	present := map[string]quota.BudgetStop{}
	for _, h := range policy.BudgetHolds {
		present[h.Name] = h
	}
	wanted := map[string]bool{}
	for i := range policy.Budgets {
		b := &policy.Budgets[i]
		if b.Action != quota.BudgetHolds {
			continue
		}
		begins, until := b.PeriodAt(now)
		h, is := present[b.Name]
		fits := is && h == b.Stop(h.Used, h.Since, until)
		use, known := used[b.Name]
		known = known && use.Begins.Equal(begins)
		switch {
		case !known: // a change of the hours alone does not end it
			same := b.Stop(h.Used, h.Since, until)
			same.Hours = h.Hours
			wanted[b.Name] = is && h == same
		case use.Hours < float64(b.Hours):
		case fits:
			wanted[b.Name] = true
		default:
			wanted[b.Name] = true
			hold = append(hold, b.Stop(int64(use.Hours), now.Truncate(time.Second), until))
		}
	}
	for _, h := range policy.BudgetHolds {
		if !wanted[h.Name] {
			end = append(end, h.Name)
		}
	}
	return hold, end
}
