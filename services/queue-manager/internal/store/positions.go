package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// How far from the head of its ClusterQueue a workload has a position in answers; one that is
// further back has none. Of a name that leads to several ClusterQueues the workloads of all
// are read, so that each has some.
const (
	positionsCounted = 1000
	positionsShared  = 5 * positionsCounted
)

// positions fills in the places in the ClusterQueues, by which admission orders workloads.
func positions(ctx context.Context, tx pgx.Tx, live []state.StoredWorkload) error {
	if !slices.ContainsFunc(live, func(w state.StoredWorkload) bool { return w.Phase == workload.Queued }) {
		return nil
	}
	rows, err := tx.Query(ctx, `SELECT l->>'namespace', l->>'name', l->>'clusterQueue' FROM policy, jsonb_array_elements(config->'localQueues') l`)
	if err != nil {
		return err
	}
	led := leading{}
	var l quota.LocalQueue
	if _, err := pgx.ForEachRow(rows, []any{&l.Namespace, &l.Name, &l.ClusterQueue}, func() error {
		led[state.LocalQueueKey{Namespace: l.Namespace, Queue: l.Name}] = l.ClusterQueue
		return nil
	}); err != nil {
		return err
	}
	wanted := map[string]bool{} // ClusterQueues
	for _, w := range live {
		if w.Phase == workload.Queued {
			wanted[led.by(w.Namespace, w.Queue)] = true
		}
	}
	waiting, err := firstOf(ctx, tx, led, led.names(wanted))
	if err != nil {
		return err
	}
	places, last := map[workload.ID]int32{}, map[string]int32{}
	for _, w := range waiting {
		if last[w.clusterQueue] < positionsCounted {
			last[w.clusterQueue]++
			places[w.id] = last[w.clusterQueue]
		}
	}
	for i := range live {
		live[i].Position = places[live[i].ID]
	}
	return nil
}

// leading has the ClusterQueue of each LocalQueue.
type leading map[state.LocalQueueKey]string

// by returns the ClusterQueue of a place, as quota.Tree.Leads does.
func (l leading) by(namespace, queue string) string {
	return cmp.Or(l[state.LocalQueueKey{Namespace: namespace, Queue: queue}], queue)
}

// names returns the names of queues that lead to one of the wanted ClusterQueues, each with
// how many of its workloads to read.
func (l leading) names(wanted map[string]bool) map[string]int {
	to := map[string]map[string]bool{} // the ClusterQueues of a name
	for name := range wanted {
		to[name] = map[string]bool{name: true}
	}
	for place, clusterQueue := range l {
		if to[place.Queue] == nil {
			to[place.Queue] = map[string]bool{}
		}
		to[place.Queue][clusterQueue] = true
	}
	names := map[string]int{}
	for name, all := range to {
		for clusterQueue := range all {
			if wanted[clusterQueue] {
				names[name] = positionsCounted
			}
		}
		if names[name] > 0 && len(all) > 1 {
			names[name] = positionsShared
		}
	}
	return names
}

// waitingAt is a workload that waits, with what orders it.
type waitingAt struct {
	id           workload.ID
	clusterQueue string
	priority     int32
	submission   int64
}

// firstOf returns the first workloads that wait in queues of the names, as many of each as its
// number, in their order. Of ClusterQueues of a name that may have more, those after the last
// one that was read are left out, because some before them may be missing.
func firstOf(ctx context.Context, tx pgx.Tx, led leading, names map[string]int) ([]waitingAt, error) {
	var queues []string
	var limits []int32
	for _, name := range slices.Sorted(maps.Keys(names)) {
		queues, limits = append(queues, name), append(limits, int32(names[name]))
	}
	rows, err := tx.Query(ctx, `SELECT q.name, w.namespace, w.id, w.priority, w.submission FROM unnest($1::text[], $2::int[]) AS q (name, most), LATERAL (
			SELECT namespace, id, priority, submission FROM workloads WHERE queue = q.name AND phase = 'queued'
			ORDER BY priority DESC, submission LIMIT q.most) w ORDER BY w.priority DESC, w.submission`, queues, limits)
	if err != nil {
		return nil, err
	}
	var all []waitingAt
	cut, read := map[string]bool{}, map[string]int{} // by ClusterQueue, by name
	var queue, namespace string
	var w waitingAt
	_, err = pgx.ForEachRow(rows, []any{&queue, &namespace, &w.id, &w.priority, &w.submission}, func() error {
		w.clusterQueue = led.by(namespace, queue)
		if !cut[w.clusterQueue] {
			all = append(all, w)
		}
		if read[queue]++; read[queue] == names[queue] {
			cut[queue] = true
			for place, clusterQueue := range led {
				if place.Queue == queue {
					cut[clusterQueue] = true
				}
			}
		}
		return nil
	})
	return all, err
}
