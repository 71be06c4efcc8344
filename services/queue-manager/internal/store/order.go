package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// orderInQueues is query.OrderPosition, as the index workloads_order has it.
const orderInQueues = "queue, priority DESC, submission"

// inQueue is the place of a workload in the order of queues.
type inQueue struct {
	queue      string
	priority   int32
	submission int64
}

// placeOf returns the place behind which a page in the order of queues begins; nil in another
// order and on the first page. found is false when the workload at that place is not known, and
// nothing is behind it. The workload need not wait any more.
func placeOf(ctx context.Context, tx pgx.Tx, r query.WorkloadsRequest) (behind *inQueue, found bool, err error) {
	if r.Order != query.OrderPosition || r.AfterID == "" {
		return nil, true, nil
	}
	behind = &inQueue{}
	err = tx.QueryRow(ctx, `SELECT queue, priority, submission FROM workloads WHERE id = $1::uuid
		UNION ALL SELECT queue, coalesce((record->>'priority')::int, 0), submission FROM archive WHERE id = $1::uuid
		ORDER BY submission DESC LIMIT 1`, string(r.AfterID)).Scan(&behind.queue, &behind.priority, &behind.submission)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return behind, err == nil, err
}

// condition selects what is behind the place, with its arguments after others. In the queue that
// the request is of, it is a range of the index.
func (b *inQueue) condition(of string, args []any) (where string, all []any) {
	n := len(args)
	args = append(args, b.queue, b.priority, b.submission)
	where = fmt.Sprintf("queue >= $%[1]d AND (queue > $%[1]d OR priority < $%[2]d OR priority = $%[2]d AND submission > $%[3]d)", n+1, n+2, n+3)
	if of == b.queue {
		where += fmt.Sprintf(" AND priority <= $%d", n+2)
	}
	return where, args
}

// sortAs puts workloads into the order of their ids.
func sortAs(live []state.StoredWorkload, ids []string) {
	at := map[workload.ID]int{}
	for i, id := range ids {
		at[workload.ID(id)] = i
	}
	slices.SortFunc(live, func(a, b state.StoredWorkload) int { return cmp.Compare(at[a.ID], at[b.ID]) })
}
