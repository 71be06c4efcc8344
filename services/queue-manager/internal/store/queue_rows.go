package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// queueRows are the queues of an answer. LocalQueues of one name may lead to different
// ClusterQueues, so each is a row; the other namespaces of a queue share one.
type queueRows struct {
	rows []query.Queue
	of   map[state.LocalQueueKey]int
	// asking are the workloads that hold quota while nodes, or checks, are asked.
	asking []string
}

func newQueueRows(queues []state.Queue, locals []quota.LocalQueue) *queueRows {
	r := &queueRows{of: map[state.LocalQueueKey]int{}}
	local := map[state.LocalQueueKey]bool{}
	for _, l := range locals {
		local[state.LocalQueueKey{Namespace: l.Namespace, Queue: l.Name}] = true
	}
	for _, q := range queues {
		var shared []string
		for _, namespace := range q.Namespaces {
			if local[state.LocalQueueKey{Namespace: namespace, Queue: q.Name}] {
				r.add(q, namespace)
			} else {
				shared = append(shared, namespace)
			}
		}
		if len(shared) > 0 || len(q.Namespaces) == 0 {
			r.add(q, shared...)
		}
	}
	return r
}

func (r *queueRows) add(q state.Queue, namespaces ...string) int {
	for _, namespace := range namespaces {
		r.of[state.LocalQueueKey{Namespace: namespace, Queue: q.Name}] = len(r.rows)
	}
	r.rows = append(r.rows, query.Queue{
		Name: q.Name, Namespaces: slices.Concat([]string{}, namespaces), Strategy: q.Strategy, Reserved: resource.List{}, Submitters: q.Rules.Submitters,
	})
	return len(r.rows) - 1
}

// at returns the row of a place. Workloads may be in a namespace that their queue has no more.
func (r *queueRows) at(namespace, queue string) *query.Queue {
	i, known := r.of[state.LocalQueueKey{Namespace: namespace, Queue: queue}]
	if !known {
		q := state.Queue{Name: queue}
		if j := slices.IndexFunc(r.rows, func(q query.Queue) bool { return q.Name == queue }); j >= 0 {
			q.Strategy, q.Rules.Submitters = r.rows[j].Strategy, r.rows[j].Submitters
		}
		i = r.add(q, namespace)
	}
	return &r.rows[i]
}

// count counts what waits and what lives, and lists what countProvisioning reads: it reads all
// workloads, which takes long where many wait.
func (r *queueRows) count(ctx context.Context, tx pgx.Tx, _ *quota.Tree) error {
	rows, err := tx.Query(ctx, `SELECT namespace, queue, count(*) FILTER (WHERE phase = 'queued'), count(*) FILTER (WHERE holding),
			coalesce(array_agg(id::text) FILTER (WHERE phase = 'queued' AND (provisioning->>'open' = 'true' OR provisioning->'checks'->>'quota' = 'true')), '{}')
		FROM workloads GROUP BY namespace, queue`)
	if err != nil {
		return err
	}
	var namespace, queue string
	var waiting, live int
	var asking []string
	_, err = pgx.ForEachRow(rows, []any{&namespace, &queue, &waiting, &live, &asking}, func() error {
		q := r.at(namespace, queue)
		q.Waiting, q.Live = waiting, live
		r.asking = append(r.asking, asking...)
		return nil
	})
	return err
}

// sumReserved sums what is reserved on nodes.
func (r *queueRows) sumReserved(ctx context.Context, tx pgx.Tx, _ *quota.Tree) error {
	rows, err := tx.Query(ctx, `SELECT o.namespace, o.queue, p.key, sum(p.value::bigint * v.pods)::bigint
		FROM reservations v JOIN workloads o ON o.id = v.workload, jsonb_each_text(v.requests) p GROUP BY o.namespace, o.queue, p.key`)
	if err != nil {
		return err
	}
	var namespace, queue string
	var name resource.Name
	var amount int64
	_, err = pgx.ForEachRow(rows, []any{&namespace, &queue, &name, &amount}, func() error {
		r.at(namespace, queue).Reserved[name] = amount
		return nil
	})
	return err
}

// readUsage reads what the quota ledger has of the ClusterQueues.
func readUsage(ctx context.Context, tx pgx.Tx, tree *quota.Tree) error {
	rows, err := tx.Query(ctx, `SELECT scope, flavor, resource, used FROM quota_usage WHERE used > 0 AND starts_with(scope, $1)`, quota.QueueScope)
	if err != nil {
		return err
	}
	var scope string
	var used quota.Charge
	_, err = pgx.ForEachRow(rows, []any{&scope, &used.Flavor, &used.Resource, &used.Amount}, func() error {
		tree.Ensure(strings.TrimPrefix(scope, quota.QueueScope)).Allocate([]quota.Charge{used})
		return nil
	})
	return err
}

// countProvisioning counts the workloads that hold quota while nodes, or checks, are asked. The ledger
// has only what is reserved on nodes.
func (r *queueRows) countProvisioning(ctx context.Context, tx pgx.Tx, tree *quota.Tree) error {
	if len(r.asking) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `SELECT w.namespace, w.queue, s.pod_sets, w.provisioning FROM workloads w JOIN shapes s ON s.id = w.shape
		WHERE w.id = ANY($1::uuid[])`, uuidsOf(r.asking))
	if err != nil {
		return err
	}
	type asking struct {
		namespace, queue string
		podSets          []workload.PodSet
		workload.Provisioning
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a asking, err error) {
		return a, row.Scan(&a.namespace, &a.queue, &a.podSets, &a.Provisioning)
	})
	for _, a := range all {
		flavors := a.Flavors
		switch {
		case a.Checks.Pending() && a.Checks.Quota:
			flavors = a.Checks.Flavors
		case !a.Open:
			continue // the checks agree, and it waits like any other
		}
		r.at(a.namespace, a.queue).Provisioning++
		tree.Ensure(tree.Leads(a.namespace, a.queue)).Allocate(quota.ChargesOf(a.podSets, flavors))
	}
	return err
}

// readPastUse reads what queues used in the past, as it is now.
func (r *queueRows) readPastUse(ctx context.Context, tx pgx.Tx, tree *quota.Tree) error {
	if tree.Config().AdmissionFairSharing == nil {
		return nil
	}
	all, err := loadPastUsage(ctx, tx)
	if err != nil {
		return err
	}
	for _, past := range all {
		tree.LoadPastUsage(past)
	}
	tree.Advance(time.Now())
	for place, i := range r.of {
		if past := tree.LocalPastUsage(place.Namespace, place.Queue); past != nil {
			r.rows[i].PastUse = append(r.rows[i].PastUse, *past)
		}
	}
	for i := range r.rows {
		slices.SortFunc(r.rows[i].PastUse, func(a, b workload.PastUse) int { return cmp.Compare(a.Namespace, b.Namespace) })
	}
	return nil
}

// answer completes the rows by what the tree has of them.
func (r *queueRows) answer(tree *quota.Tree) query.QueuesAnswer {
	for i := range r.rows {
		describe(&r.rows[i], tree)
	}
	slices.SortStableFunc(r.rows, func(a, b query.Queue) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Namespaces, b.Namespaces))
	})
	var known []query.ClusterQueue
	for _, q := range tree.Queues() {
		c := query.ClusterQueue{
			Name: q.Name, Cohort: q.Cohort, Queues: []string{}, Strategy: cmp.Or(q.Strategy, quota.BestEffortFIFO),
			Quota: q.Lines(), Share: q.Share(), Inactive: tree.Inactive(q.Name), Hold: tree.ClusterQueueStoppedBy(q.Name),
		}
		if q.StopPolicy != quota.StopNone {
			c.StopPolicy = q.StopPolicy
		}
		known = append(known, c)
	}
	policy := tree.Config()
	return query.QueuesAnswer{
		Queues: r.rows, ClusterQueues: query.ClusterQueuesOf(known, r.rows), Cohorts: tree.Cohorts(),
		Flavors: policy.Flavors, PriorityClasses: policy.Priorities, Inactive: policy.Inactive(), InactiveChecks: policy.InactiveChecks(),
	}
}

// describe prints what the tree knows of a row, whose namespaces all lead to one ClusterQueue.
func describe(q *query.Queue, tree *quota.Tree) {
	q.ClusterQueue, q.Hold = q.Name, tree.StoppedBy("", q.Name)
	for _, namespace := range q.Namespaces {
		q.Hold = cmp.Or(q.Hold, tree.StoppedBy(namespace, q.Name))
	}
	if len(q.Namespaces) > 0 {
		q.ClusterQueue = tree.Leads(q.Namespaces[0], q.Name)
		if local := tree.Local(q.Namespaces[0], q.Name); local != nil && local.StopPolicy != quota.StopNone {
			q.StopPolicy = local.StopPolicy
		}
	}
	of := tree.Ensure(q.ClusterQueue)
	q.Inactive, q.ClusterQueueHold = tree.Inactive(q.ClusterQueue), tree.ClusterQueueStoppedBy(q.ClusterQueue)
	q.Cohort, q.Quota, q.Share = of.Cohort, of.Lines(), of.Share()
	if of.Strategy != "" {
		q.Strategy = of.Strategy
	}
	if of.StopPolicy != "" && of.StopPolicy != quota.StopNone {
		q.StopPolicy = of.StopPolicy
	}
}
