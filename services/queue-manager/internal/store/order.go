package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// ranges are the conditions that together select what is behind the place, with their arguments
// after others. Each is one range of the index, so that nothing before the place is read.
func (b *inQueue) ranges(args []any) (ranges []string, all []any) {
	n := len(args)
	return []string{
		fmt.Sprintf("queue = $%d AND priority = $%d AND submission > $%d", n+1, n+2, n+3),
		fmt.Sprintf("queue = $%d AND priority < $%d", n+1, n+2),
		fmt.Sprintf("queue > $%d", n+1),
	}, append(args, b.queue, b.priority, b.submission)
}

// selectLive is the statement that finds the ids of the live workloads of a page, and one more
// when there is another page. behind is where the page begins in the order of queues; nil in that
// of submission and on the first page. labels is the condition on a row, as filter takes it.
func selectLive(r query.WorkloadsRequest, behind *inQueue, labels func(condition string) string) (statement string, args []any) {
	where, args := filter(r, "submitter", labels)
	args = append(args, r.Limit+1)
	limit := fmt.Sprintf(" LIMIT $%d", len(args))
	switch {
	case r.Order != query.OrderPosition:
		return "SELECT id FROM workloads WHERE " + where + " ORDER BY submission" + limit, args
	case behind == nil:
		return "SELECT id FROM workloads WHERE " + where + " ORDER BY " + orderInQueues + limit, args
	}
	ranges, args := behind.ranges(args)
	for i, condition := range ranges {
		ranges[i] = "(SELECT id, queue, priority, submission FROM workloads WHERE " + where + " AND " + condition + " ORDER BY " + orderInQueues + limit + ")"
	}
	return "SELECT id FROM (" + strings.Join(ranges, " UNION ALL ") + ") AS behind ORDER BY " + orderInQueues + limit, args
}

// sortAs puts workloads into the order of their ids.
func sortAs(live []state.StoredWorkload, ids []string) {
	at := map[workload.ID]int{}
	for i, id := range ids {
		at[workload.ID(id)] = i
	}
	slices.SortFunc(live, func(a, b state.StoredWorkload) int { return cmp.Compare(at[a.ID], at[b.ID]) })
}
