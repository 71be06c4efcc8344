package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
)

// BudgetUse is what was used of a budget in a period, as far as it is summed.
type BudgetUse struct {
	Budget string
	// Spec is what it is of: it counts for no other queue or resource.
	Spec         string
	Begins, Upto time.Time
	Hours        float64
}

// Policy returns the stored policy.
func (s *Store) Policy(ctx context.Context) (policy quota.Config, err error) {
	err = s.pool.QueryRow(ctx, `SELECT config FROM policy`).Scan(&policy)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return policy, fmt.Errorf("read the policy: %w", err)
	}
	return policy, nil
}

// BudgetUses returns the stored uses by the names of their budgets.
func (s *Store) BudgetUses(ctx context.Context) (map[string]BudgetUse, error) {
	return loadBudgetUses(ctx, s.pool)
}

func loadBudgetUses(ctx context.Context, tx querier) (map[string]BudgetUse, error) {
	rows, err := tx.Query(ctx, `SELECT budget, spec, begins, upto, hours FROM budget_usage`)
	if err != nil {
		return nil, fmt.Errorf("read the use of budgets: %w", err)
	}
	all := map[string]BudgetUse{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (u BudgetUse, err error) {
		err = row.Scan(&u.Budget, &u.Spec, &u.Begins, &u.Upto, &u.Hours)
		u.Begins, u.Upto = u.Begins.UTC(), u.Upto.UTC()
		all[u.Budget] = u
		return u, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the use of budgets: %w", err)
	}
	return all, nil
}

// KeepBudgetUses stores uses, and deletes those of all budgets but the present ones. Of the same
// use in the same period the later stays.
func (s *Store) KeepBudgetUses(ctx context.Context, epoch int64, uses []BudgetUse, present []string) error {
	err := s.transact(ctx, epoch, func(batch *pgx.Batch) {
		for _, u := range uses {
			batch.Queue(`INSERT INTO budget_usage (budget, spec, begins, upto, hours) VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (budget) DO UPDATE SET spec = excluded.spec, begins = excluded.begins, upto = excluded.upto, hours = excluded.hours
				WHERE budget_usage.spec <> excluded.spec OR budget_usage.begins <> excluded.begins OR budget_usage.upto <= excluded.upto`,
				u.Budget, u.Spec, u.Begins, u.Upto, u.Hours)
		}
		batch.Queue(`DELETE FROM budget_usage WHERE NOT budget = ANY($1::text[])`, append([]string{}, present...))
	})
	if err != nil {
		return fmt.Errorf("keep the use of %d budgets: %w", len(uses), err)
	}
	return nil
}

// budgetsOf returns the budgets of a policy with what was used of them in the present period.
func budgetsOf(policy quota.Config, uses map[string]BudgetUse, now time.Time) []query.Budget {
	var all []query.Budget
	for i := range policy.Budgets {
		b := &policy.Budgets[i]
		shown := query.Budget{Budget: *b}
		begins, until := b.PeriodAt(now)
		shown.Until = until
		if use, known := uses[b.Name]; known && use.Begins.Equal(begins) {
			shown.UsedHours, shown.Upto = use.Hours, use.Upto
		}
		for j := range policy.BudgetHolds {
			h := &policy.BudgetHolds[j]
			shown.Holds = shown.Holds || h.Name == b.Name && now.Before(h.Until)
		}
		all = append(all, shown)
	}
	return all
}

// addBudgets gives queues their budgets.
func addBudgets(queues []query.Queue, all []query.Budget) {
	for i := range queues {
		q := &queues[i]
		for _, b := range all {
			if b.Queue == q.Name && (b.Namespace == "" || slices.Contains(q.Namespaces, b.Namespace)) {
				q.Budgets = append(q.Budgets, b)
			}
		}
	}
}
