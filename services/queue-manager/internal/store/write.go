package store

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/workload"
)

// queueWorkloads adds the statements for workloads and their reservations. A
// workload's phase and its reservations change in one statement, because the
// guards look at both after each.
//
// Everything is given back before anything is taken: the reservations of gangs
// that end and of gangs that move are deleted first, and those of gangs that
// move, grow, shrink or start are then inserted by one statement. So a commit is
// judged by what it comes to, whatever gangs exchange in it.
// It returns the shapes that it has written.
func (s *Store) queueWorkloads(batch *pgx.Batch, c book.Changes) (shapes []string) {
	moved := movedLive(c)
	queueGivenBack(batch, slices.Concat(c.Freed, moved))
	var finished []archived
	var updated, added []row
	for _, record := range c.Updated {
		if isCold(record) {
			finished = append(finished, archived{Record: record})
		} else {
			updated = append(updated, newRow(record, 0))
		}
	}
	var kept []book.Added
	for _, a := range c.Added {
		if isCold(a.Record) {
			finished = append(finished, archived{a.Record, a.Order, a.Manifest})
		} else {
			added, kept = append(added, newRow(a.Record, a.Order)), append(kept, a)
		}
	}
	queueFinished(batch, finished) // before the new ones, who may have their names
	queueManifests(batch, kept)
	shapes = s.queueShapes(batch, c.Epoch, added, updated)
	taken := slices.Clone(c.Reserved)
	for _, r := range c.Moved {
		if slices.Contains(moved, r.Workload) {
			taken = append(taken, r)
		}
	}
	if len(updated)+len(added)+len(taken) > 0 {
		queueLive(batch, added, updated, taken)
	}
	return shapes
}

// isCold reports whether nothing will happen to the workload any more.
func isCold(r workload.Record) bool { return r.Phase.Final() && !r.Holding }

// movedLive returns the gangs that have other reservations now. One that has ended
// in the same commit holds nothing.
func movedLive(c book.Changes) (moved []workload.ID) {
	written := map[workload.ID]bool{}
	for _, r := range c.Updated {
		written[r.ID] = !isCold(r)
	}
	for _, r := range c.Moved {
		if written[r.Workload] {
			written[r.Workload] = false // once is enough
			moved = append(moved, r.Workload)
		}
	}
	return moved
}

// queueGivenBack deletes the reservations of workloads. They are queued for the
// moment; what becomes of them follows in the same transaction.
func queueGivenBack(batch *pgx.Batch, ids []workload.ID) {
	if len(ids) > 0 {
		batch.Queue(`WITH freed AS (DELETE FROM reservations WHERE workload = ANY($1::uuid[]))
			UPDATE workloads SET phase = 'queued', holding = false, cluster = NULL WHERE id = ANY($1::uuid[])`, uuidsOf(ids))
	}
}

// archived is a finished workload; of one that was live its order and manifest
// are in the database.
type archived struct {
	workload.Record
	order    int64
	manifest json.RawMessage
}

func queueFinished(batch *pgx.Batch, finished []archived) {
	if len(finished) == 0 {
		return
	}
	n := len(finished)
	ids, queues, namespaces, names := make(uuids, n), make([]string, n), make([]string, n), make([]string, n)
	phases, digests, records := make([]string, n), make([]string, n), make([]string, n)
	orders, manifests, times := make([]*int64, n), make([]*string, n), make([]time.Time, n)
	for i, f := range finished {
		ids[i], queues[i], namespaces[i], names[i] = uuidText(f.ID), f.Queue, f.Namespace, f.Name
		phases[i], digests[i], records[i], times[i] = string(f.Phase), f.Digest, encoded(f.Record), f.Times.Finished
		if f.order != 0 {
			orders[i] = &f.order
		}
		manifests[i] = orNull(string(f.manifest))
	}
	batch.Queue(`WITH gone AS (DELETE FROM workloads WHERE id = ANY($1::uuid[]) RETURNING id, submission),
		texts AS (DELETE FROM manifests WHERE workload = ANY($1::uuid[]) RETURNING workload, manifest)
		INSERT INTO archive (id, submission, queue, namespace, name, phase, digest, finished_at, record, manifest)
		SELECT f.id, coalesce(f.submission, gone.submission), f.queue, f.namespace, f.name, f.phase, f.digest, f.finished_at,
			f.record, coalesce(f.manifest, texts.manifest)
		FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
			$9::json[], $10::json[]) AS f (id, submission, queue, namespace, name, phase, digest, finished_at, record, manifest)
		LEFT JOIN gone ON gone.id = f.id LEFT JOIN texts ON texts.workload = f.id`,
		ids, orders, queues, namespaces, names, phases, digests, times, records, manifests)
}

func queueManifests(batch *pgx.Batch, added []book.Added) {
	if len(added) == 0 {
		return
	}
	ids, manifests := make(uuids, len(added)), make([]string, len(added))
	for i, a := range added {
		ids[i], manifests[i] = uuidText(a.ID), string(a.Manifest)
	}
	batch.Queue(`INSERT INTO manifests (workload, manifest) SELECT * FROM unnest($1::uuid[], $2::json[])`, ids, manifests)
}

// row is a live workload to write; the order is of new ones only.
type row struct {
	workload.Record
	order          int64
	shape, podSets string // the id of the pod sets, and themselves as written
}

func newRow(record workload.Record, order int64) row {
	podSets := encoded(record.PodSets)
	sum := sha256.Sum256([]byte(podSets))
	return row{record, order, uuid.UUID(sum[:16]).String(), podSets}
}

// queueLive writes live workloads, new and changed, and new reservations.
func queueLive(batch *pgx.Batch, added, updated []row, reserved []book.Reservation) {
	a, u, r := columnsOf(added), columnsOf(updated), reservationColumns(reserved)
	batch.Queue(`WITH added AS (
			INSERT INTO workloads (id, submission, queue, namespace, kind, name, priority, digest, submitted_at, life, shape, gang,
				phase, attempt, cluster, holding, cancel_requested, reason, admitted_at, dispatched_at, running_at, finished_at,
				requeues, not_before, evict_at, flavors, submitter)
			SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[],
				$9::timestamptz[], $10::jsonb[], $11::uuid[], $12::int[], $13::text[], $14::int[], $15::text[], $16::bool[], $17::bool[],
				$18::jsonb[], $19::timestamptz[], $20::timestamptz[], $21::timestamptz[], $22::timestamptz[],
				$23::int[], $24::timestamptz[], $25::timestamptz[], $50::jsonb[], $53::text[])
		), changed AS (
			UPDATE workloads w
			SET shape = u.shape, gang = u.gang, phase = u.phase, attempt = u.attempt, cluster = u.cluster, holding = u.holding,
				cancel_requested = u.cancel_requested, reason = u.reason, admitted_at = u.admitted, dispatched_at = u.dispatched,
				running_at = u.running, finished_at = u.finished, requeues = u.requeues, not_before = u.not_before, evict_at = u.evict_at,
				flavors = u.flavors
			FROM unnest($26::uuid[], $27::uuid[], $28::int[], $29::text[], $30::int[], $31::text[], $32::bool[], $33::bool[],
				$34::jsonb[], $35::timestamptz[], $36::timestamptz[], $37::timestamptz[], $38::timestamptz[],
				$39::int[], $40::timestamptz[], $41::timestamptz[], $51::jsonb[])
				AS u (id, shape, gang, phase, attempt, cluster, holding, cancel_requested, reason, admitted, dispatched, running, finished,
					requeues, not_before, evict_at, flavors)
			WHERE w.id = u.id
		)
		INSERT INTO reservations (workload, attempt, cluster, node, pod_set, pods, hostname, requests, charges)
		SELECT * FROM unnest($42::uuid[], $43::int[], $44::text[], $45::text[], $46::text[], $47::int[], $48::text[], $49::jsonb[], $52::jsonb[])`,
		a.ids, a.orders, a.queues, a.namespaces, a.kinds, a.names, a.priorities, a.digests, a.submitted, a.lives, a.shapes, a.gangs,
		a.phases, a.attempts, a.clusters, a.holding, a.cancels, a.reasons, a.admitted, a.dispatched, a.running, a.finished,
		a.requeues, a.notBefore, a.evictAt,
		u.ids, u.shapes, u.gangs, u.phases, u.attempts, u.clusters, u.holding, u.cancels, u.reasons,
		u.admitted, u.dispatched, u.running, u.finished, u.requeues, u.notBefore, u.evictAt,
		r.ids, r.attempts, r.clusters, r.nodes, r.sets, r.pods, r.hostnames, r.requests, a.flavors, u.flavors, r.charges,
		a.submitters)
}

// columns are rows turned into one array per column. Arrays are never nil:
// unnest of NULL would be of no length.
type columns struct {
	ids, shapes                                                          uuids
	queues, namespaces, kinds, names, phases, digests, lives, submitters []string
	clusters, reasons, flavors                                           []*string
	priorities, attempts, gangs, requeues                                []int32
	orders                                                               []int64
	holding, cancels                                                     []bool
	submitted                                                            []time.Time
	admitted, dispatched, running, finished, notBefore, evictAt          []*time.Time
}

func columnsOf(rows []row) columns {
	n := len(rows)
	c := columns{
		ids: make(uuids, n), queues: make([]string, n), namespaces: make([]string, n), kinds: make([]string, n),
		names: make([]string, n), phases: make([]string, n), digests: make([]string, n), shapes: make(uuids, n), lives: make([]string, n), submitters: make([]string, n),
		requeues: make([]int32, n), notBefore: make([]*time.Time, n), evictAt: make([]*time.Time, n),
		clusters: make([]*string, n), reasons: make([]*string, n), flavors: make([]*string, n), priorities: make([]int32, n), attempts: make([]int32, n),
		gangs: make([]int32, n), orders: make([]int64, n), holding: make([]bool, n), cancels: make([]bool, n),
		submitted: make([]time.Time, n), admitted: make([]*time.Time, n), dispatched: make([]*time.Time, n),
		running: make([]*time.Time, n), finished: make([]*time.Time, n),
	}
	for i, r := range rows {
		c.ids[i], c.orders[i], c.queues[i], c.namespaces[i] = uuidText(r.ID), r.order, r.Queue, r.Namespace
		c.kinds[i], c.names[i], c.phases[i], c.digests[i] = r.Kind, r.Name, string(r.Phase), r.Digest
		c.shapes[i], c.lives[i], c.submitters[i] = uuidText(r.shape), encoded(r.Life), r.Submitter
		c.requeues[i], c.notBefore[i], c.evictAt[i] = int32(r.Requeues), timeOrNull(r.NotBefore), timeOrNull(r.EvictAt)
		c.priorities[i], c.attempts[i], c.gangs[i] = r.Priority, int32(r.Attempt), int32(r.Pods())
		c.holding[i], c.cancels[i], c.clusters[i] = r.Holding, r.CancelRequested, orNull(r.Cluster)
		c.submitted[i], c.admitted[i], c.dispatched[i] = r.Times.Submitted, timeOrNull(r.Times.Admitted), timeOrNull(r.Times.Dispatched)
		c.running[i], c.finished[i] = timeOrNull(r.Times.Running), timeOrNull(r.Times.Finished)
		if r.Flavors != nil {
			c.flavors[i] = orNull(encoded(r.Flavors))
		}
		if r.Reason != nil {
			c.reasons[i] = orNull(encoded(r.Reason))
		}
	}
	return c
}

// queueShapes writes the pod sets that the database may not have yet, and
// returns their ids.
func (s *Store) queueShapes(batch *pgx.Batch, epoch int64, lists ...[]row) (shapes []string) {
	var written []string
	var pods []int32
	fresh := map[string]bool{}
	for _, rows := range lists {
		for _, r := range rows {
			if fresh[r.shape] || s.hasShape(epoch, r.shape) {
				continue
			}
			fresh[r.shape] = true
			shapes, written, pods = append(shapes, r.shape), append(written, r.podSets), append(pods, int32(r.Pods()))
		}
	}
	if len(shapes) > 0 {
		batch.Queue(`INSERT INTO shapes (id, pod_sets, pods) SELECT * FROM unnest($1::uuid[], $2::jsonb[], $3::int[])
			ON CONFLICT DO NOTHING`, uuidsOf(shapes), written, pods)
	}
	return shapes
}

type reservationRows struct {
	ids                                        uuids
	clusters, nodes, sets, hostnames, requests []string
	charges                                    []*string
	attempts, pods                             []int32
}

func reservationColumns(reserved []book.Reservation) reservationRows {
	n := len(reserved)
	rows := reservationRows{
		ids: make(uuids, n), clusters: make([]string, n), nodes: make([]string, n), sets: make([]string, n),
		hostnames: make([]string, n), requests: make([]string, n), charges: make([]*string, n), attempts: make([]int32, n), pods: make([]int32, n),
	}
	for i, r := range reserved {
		rows.ids[i], rows.clusters[i], rows.nodes[i], rows.sets[i] = uuidText(r.Workload), r.Cluster, r.Node, r.PodSet
		rows.attempts[i], rows.pods[i], rows.hostnames[i], rows.requests[i] = int32(r.Attempt), int32(r.Pods), r.Hostname, encoded(r.Requests)
		if r.Charges != nil {
			rows.charges[i] = orNull(encoded(r.Charges))
		}
	}
	return rows
}

// queueHistory writes the steps of workloads' lives.
func queueHistory(batch *pgx.Batch, c book.Changes) {
	n := len(c.History)
	if n == 0 {
		return
	}
	ids, phases, reasons := make(uuids, n), make([]string, n), make([]*string, n)
	times, attempts := make([]time.Time, n), make([]int32, n)
	clusters, events := make([]*string, n), make([]*string, n)
	for i, row := range c.History {
		ids[i], phases[i], times[i], attempts[i] = uuidText(row.Workload), string(row.Phase), row.At, int32(row.Attempt)
		clusters[i], events[i] = orNull(row.Cluster), orNull(row.EventID)
		if row.Reason != nil {
			reasons[i] = orNull(encoded(row.Reason))
		}
	}
	batch.Queue(`INSERT INTO history (workload, at, epoch, version, phase, attempt, cluster, reason, event_id)
		SELECT id, at, $1, $2, phase, attempt, cluster, reason, event_id
		FROM unnest($3::uuid[], $4::timestamptz[], $5::text[], $6::int[], $7::text[], $8::jsonb[], $9::text[]) WITH ORDINALITY
			AS h (id, at, phase, attempt, cluster, reason, event_id, place) ORDER BY place`,
		c.Epoch, c.Version, ids, times, phases, attempts, clusters, reasons, events)
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
