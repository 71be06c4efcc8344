package store

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/workload"
)

// queueAdded, and its siblings below, add one statement for all rows of a kind.

func queueAdded(batch *pgx.Batch, added []book.Added) {
	if len(added) == 0 {
		return
	}
	n := len(added)
	orders, ids, manifests := make([]int64, n), make([]string, n), make([]string, n)
	records := make([]workload.Record, n)
	podSets, digests, lives := make([]string, n), make([]string, n), make([]string, n)
	for i, a := range added {
		orders[i], ids[i], manifests[i], records[i] = a.Order, string(a.ID), string(a.Manifest), a.Record
		podSets[i], digests[i], lives[i] = encoded(a.PodSets), a.Digest, encoded(a.Life)
	}
	c := columnsOf(records)
	batch.Queue(`INSERT INTO workloads (submission, id, queue, namespace, kind, name, priority, digest, pod_sets, manifest,
			submitted_at, phase, attempt, cluster, holding, cancel_requested, reason,
			admitted_at, dispatched_at, running_at, finished_at, requeues, not_before, evict_at, life)
		SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[],
			$9::jsonb[], $10::json[], $11::timestamptz[], $12::text[], $13::int[], $14::text[], $15::bool[], $16::bool[],
			$17::jsonb[], $18::timestamptz[], $19::timestamptz[], $20::timestamptz[], $21::timestamptz[],
			$22::int[], $23::timestamptz[], $24::timestamptz[], $25::jsonb[])`,
		orders, ids, c.queues, c.namespaces, c.kinds, c.names, c.priorities, digests, podSets, manifests, c.submitted,
		c.phases, c.attempts, c.clusters, c.holding, c.cancels, c.reasons, c.admitted, c.dispatched, c.running, c.finished,
		c.requeues, c.notBefore, c.evictAt, lives)
}

func queueUpdated(batch *pgx.Batch, updated []workload.Record) {
	if len(updated) == 0 {
		return
	}
	c := columnsOf(updated)
	batch.Queue(`UPDATE workloads w
		SET phase = u.phase, attempt = u.attempt, cluster = u.cluster, holding = u.holding,
			cancel_requested = u.cancel_requested, reason = u.reason, admitted_at = u.admitted,
			dispatched_at = u.dispatched, running_at = u.running, finished_at = u.finished,
			requeues = u.requeues, not_before = u.not_before, evict_at = u.evict_at
		FROM unnest($1::uuid[], $2::text[], $3::int[], $4::text[], $5::bool[], $6::bool[], $7::jsonb[],
			$8::timestamptz[], $9::timestamptz[], $10::timestamptz[], $11::timestamptz[],
			$12::int[], $13::timestamptz[], $14::timestamptz[])
			AS u (id, phase, attempt, cluster, holding, cancel_requested, reason, admitted, dispatched, running, finished,
				requeues, not_before, evict_at)
		WHERE w.id = u.id`,
		c.ids, c.phases, c.attempts, c.clusters, c.holding, c.cancels, c.reasons,
		c.admitted, c.dispatched, c.running, c.finished, c.requeues, c.notBefore, c.evictAt)
}

// columns are records turned into one array per column.
type columns struct {
	ids, queues, namespaces, kinds, names, phases []string
	clusters, reasons                             []*string
	priorities, attempts, requeues                []int32
	holding, cancels                              []bool
	submitted                                     []time.Time
	admitted, dispatched, running, finished       []*time.Time
	notBefore, evictAt                            []*time.Time
}

func columnsOf(records []workload.Record) columns {
	var c columns
	for _, r := range records {
		c.ids = append(c.ids, string(r.ID))
		c.queues = append(c.queues, r.Queue)
		c.namespaces = append(c.namespaces, r.Namespace)
		c.kinds = append(c.kinds, r.Kind)
		c.names = append(c.names, r.Name)
		c.phases = append(c.phases, string(r.Phase))
		c.priorities = append(c.priorities, r.Priority)
		c.attempts = append(c.attempts, int32(r.Attempt))
		c.holding = append(c.holding, r.Holding)
		c.cancels = append(c.cancels, r.CancelRequested)
		c.clusters = append(c.clusters, orNull(r.Cluster))
		c.submitted = append(c.submitted, r.Times.Submitted)
		c.admitted = append(c.admitted, timeOrNull(r.Times.Admitted))
		c.dispatched = append(c.dispatched, timeOrNull(r.Times.Dispatched))
		c.running = append(c.running, timeOrNull(r.Times.Running))
		c.finished = append(c.finished, timeOrNull(r.Times.Finished))
		c.requeues = append(c.requeues, int32(r.Requeues))
		c.notBefore = append(c.notBefore, timeOrNull(r.NotBefore))
		c.evictAt = append(c.evictAt, timeOrNull(r.EvictAt))
		var reason *string
		if r.Reason != nil {
			reason = orNull(encoded(r.Reason))
		}
		c.reasons = append(c.reasons, reason)
	}
	return c
}

func queueFreed(batch *pgx.Batch, freed []workload.ID) {
	if len(freed) > 0 {
		batch.Queue(`DELETE FROM reservations WHERE workload = ANY($1::uuid[])`, texts(freed))
	}
}

func queueReserved(batch *pgx.Batch, reserved []book.Reservation) {
	if len(reserved) == 0 {
		return
	}
	n := len(reserved)
	ids, clusters, nodes, sets := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	attempts, pods := make([]int32, n), make([]int32, n)
	hostnames, requests := make([]string, n), make([]string, n)
	for i, r := range reserved {
		ids[i], clusters[i], nodes[i], sets[i] = string(r.Workload), r.Cluster, r.Node, r.PodSet
		attempts[i], pods[i], hostnames[i], requests[i] = int32(r.Attempt), int32(r.Pods), r.Hostname, encoded(r.Requests)
	}
	batch.Queue(`INSERT INTO reservations (workload, attempt, cluster, node, pod_set, pods, hostname, requests)
		SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[], $8::jsonb[])`,
		ids, attempts, clusters, nodes, sets, pods, hostnames, requests)
}

func queueNodes(batch *pgx.Batch, rows []book.NodeRow) {
	if len(rows) == 0 {
		return
	}
	var clusters, names, observed []string
	var sessions, seqs []int64
	var present []bool
	var at []int32 // place in clusters and names
	var resources []string
	var allocatable, used []int64
	for i, row := range rows {
		clusters, names, observed = append(clusters, row.Cluster), append(names, row.Name), append(observed, encoded(row.Node))
		sessions, seqs = append(sessions, row.Version.Session), append(seqs, int64(row.Version.Seq))
		present = append(present, row.Present)
		for _, name := range row.Allocatable.Max(row.Used).Names() {
			at, resources = append(at, int32(i+1)), append(resources, string(name))
			allocatable, used = append(allocatable, row.Allocatable[name]), append(used, row.Used[name])
		}
	}
	batch.Queue(`INSERT INTO nodes (cluster, name, session, seq, present, observed)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[], $6::jsonb[])
		ON CONFLICT (cluster, name) DO UPDATE SET session = excluded.session, seq = excluded.seq,
			present = excluded.present, observed = excluded.observed`,
		clusters, names, sessions, seqs, present, observed)
	// A resource that the node does not report any more stays while it is reserved.
	batch.Queue(`UPDATE node_resources SET allocatable = 0, used = 0
		WHERE (cluster, node) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, clusters, names)
	batch.Queue(`INSERT INTO node_resources (cluster, node, resource, allocatable, used)
		SELECT ($1::text[])[a.at], ($2::text[])[a.at], a.resource, a.allocatable, a.used
		FROM unnest($3::int[], $4::text[], $5::bigint[], $6::bigint[]) AS a (at, resource, allocatable, used)
		ON CONFLICT (cluster, node, resource) DO UPDATE SET allocatable = excluded.allocatable, used = excluded.used`,
		clusters, names, at, resources, allocatable, used)
}

// queueDropped removes nodes that are gone and on which nothing is reserved.
func queueDropped(batch *pgx.Batch, rows []book.NodeRow) {
	var clusters, names []string
	for _, row := range rows {
		if row.Drop {
			clusters, names = append(clusters, row.Cluster), append(names, row.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	batch.Queue(`DELETE FROM node_resources WHERE (cluster, node) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, clusters, names)
	batch.Queue(`DELETE FROM nodes WHERE (cluster, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, clusters, names)
}

func queueHistory(batch *pgx.Batch, epoch int64, rows []book.HistoryRow) {
	if len(rows) == 0 {
		return
	}
	n := len(rows)
	ids, phases, reasons := make([]string, n), make([]string, n), make([]*string, n)
	times, attempts := make([]time.Time, n), make([]int32, n)
	for i, row := range rows {
		ids[i], phases[i], times[i], attempts[i] = string(row.Workload), string(row.Phase), row.At, int32(row.Attempt)
		if row.Reason != nil {
			reasons[i] = orNull(encoded(row.Reason))
		}
	}
	batch.Queue(`INSERT INTO history (workload, at, epoch, phase, attempt, reason)
		SELECT id, at, $1, phase, attempt, reason
		FROM unnest($2::uuid[], $3::timestamptz[], $4::text[], $5::int[], $6::jsonb[]) WITH ORDINALITY
			AS h (id, at, phase, attempt, reason, place) ORDER BY place`, epoch, ids, times, phases, attempts, reasons)
}

// encoded returns plain data as JSON; such data can always be encoded.
func encoded(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic("plain data cannot be encoded: " + err.Error())
	}
	return string(data)
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
