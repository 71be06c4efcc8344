package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
)

// means is what a row of learned has beside its key.
type means struct {
	Starts  admission.Mean `json:"starts,omitzero"`
	Returns admission.Mean `json:"returns,omitzero"`
}

// sizes is more than there are sizes by pods: the column size has that by pods and, times this,
// that by accelerators.
const sizes = 100

// queueLearned stores what was learned of the cost of evictions.
func queueLearned(batch *pgx.Batch, all []admission.Learned) {
	if len(all) == 0 {
		return
	}
	columns := []column{
		columnOf("queue", "text", all, func(l admission.Learned) string { return l.Queue }),
		columnOf("kind", "text", all, func(l admission.Learned) string { return l.Kind }),
		columnOf("size", "int", all, func(l admission.Learned) int32 { return int32(l.Accelerators*sizes + l.Size) }),
		columnOf("durations", "jsonb", all, func(l admission.Learned) string { return encoded(means{l.Starts, l.Returns}) }),
	}
	var p parameters
	batch.Queue(`INSERT INTO learned (`+names(columns)+`) SELECT * FROM `+p.rows("l", columns)+`
		ON CONFLICT (queue, kind, size) DO UPDATE SET durations = excluded.durations`, p...)
}

// queueForgottenLearned removes what was learned in queues that are configured no more.
func queueForgottenLearned(batch *pgx.Batch, tree *quota.Tree) {
	batch.Queue(`DELETE FROM learned WHERE NOT queue = ANY($1::text[])`, tree.PastUsers())
}

// Learned reads all that was learned of the cost of evictions.
func (s *Store) Learned(ctx context.Context) ([]admission.Learned, error) {
	return loadLearned(ctx, s.pool)
}

func loadLearned(ctx context.Context, tx querier) ([]admission.Learned, error) {
	rows, err := tx.Query(ctx, `SELECT queue, kind, size, durations FROM learned ORDER BY queue COLLATE "C", kind COLLATE "C", size`)
	if err != nil {
		return nil, fmt.Errorf("load what was learned of the cost of evictions: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l admission.Learned, err error) {
		var d means
		err = row.Scan(&l.Queue, &l.Kind, &l.Size, &d)
		l.Starts, l.Returns = d.Starts, d.Returns
		l.Accelerators, l.Size = l.Size/sizes, l.Size%sizes
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("load what was learned of the cost of evictions: %w", err)
	}
	return all, nil
}
