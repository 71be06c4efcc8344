package store

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// queueWorkloads adds the statements for workloads and their reservations. A
// workload's phase and its reservations change in one statement, because the
// guards look at both after each.
//
// Everything is released before anything is reserved: the reservations of gangs
// that end and of gangs that get other places are deleted first, and those of gangs that
// get other places, grow, shrink or start are then inserted by one statement. So a commit is
// judged by what it comes to, whatever gangs exchange in it.
// It returns the shapes that it has written.
func (s *Store) queueWorkloads(batch *pgx.Batch, c state.Changes) (shapes []string) {
	replaced := replacedLive(c)
	queueRelease(batch, slices.Concat(c.Freed, replaced))
	var finished []archived
	var updated, added []row
	for _, record := range c.Updated {
		if isCold(record) {
			finished = append(finished, archived{Record: record})
		} else {
			updated = append(updated, newRow(record, 0))
		}
	}
	var kept []state.Added
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
	inserted := slices.Clone(c.Reserved)
	for _, r := range c.Replaced {
		if slices.Contains(replaced, r.Workload) {
			inserted = append(inserted, r)
		}
	}
	if len(updated)+len(added)+len(inserted) > 0 {
		queueLive(batch, added, updated, inserted)
	}
	queueAsked(batch, c.Asked)
	queueHeardAgain(batch, c.HeardAgain)
	return shapes
}

// queueAsked keeps the last requests of workloads; those that have gone have no row.
func queueAsked(batch *pgx.Batch, asked []state.Asked) {
	if len(asked) == 0 {
		return
	}
	var p parameters
	rows := p.rows("u", []column{
		uuidColumn("id", asked, func(a state.Asked) workload.ID { return a.Workload }),
		columnOf("asked", "jsonb", asked, func(a state.Asked) string { return encoded(a.Asked) }),
	})
	batch.Queue(`UPDATE workloads w SET asked = u.asked FROM `+rows+` WHERE w.id = u.id`, p...)
}

// queueHeardAgain keeps when the clusters of workloads were heard again.
func queueHeardAgain(batch *pgx.Batch, heard []state.HeardAgain) {
	if len(heard) == 0 {
		return
	}
	var p parameters
	rows := p.rows("u", []column{
		uuidColumn("id", heard, func(h state.HeardAgain) workload.ID { return h.Workload }),
		columnOf("heard_again", "timestamptz", heard, func(h state.HeardAgain) time.Time { return h.At }),
	})
	batch.Queue(`UPDATE workloads w SET heard_again = u.heard_again FROM `+rows+` WHERE w.id = u.id`, p...)
}

// isCold reports whether nothing will happen to the workload any more.
func isCold(r workload.Record) bool { return r.Phase.Final() && !r.Holding }

// replacedLive returns the gangs that have other reservations now. One that has ended
// in the same commit holds nothing.
func replacedLive(c state.Changes) (replaced []workload.ID) {
	written := map[workload.ID]bool{}
	for _, r := range c.Updated {
		written[r.ID] = !isCold(r)
	}
	for _, r := range c.Replaced {
		if written[r.Workload] {
			written[r.Workload] = false // once is enough
			replaced = append(replaced, r.Workload)
		}
	}
	return replaced
}

// queueRelease deletes the reservations of workloads. They are queued for the
// moment; what becomes of them follows in the same transaction.
func queueRelease(batch *pgx.Batch, ids []workload.ID) {
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
	var p parameters
	ids := p.add(uuidsOf(idsOf(finished)))
	rows := p.rows("f", []column{
		uuidColumn("id", finished, func(f archived) workload.ID { return f.ID }),
		columnOf("submission", "bigint", finished, func(f archived) *int64 { return orderOrNull(f.order) }),
		columnOf("queue", "text", finished, func(f archived) string { return f.Queue }),
		columnOf("namespace", "text", finished, func(f archived) string { return f.Namespace }),
		columnOf("name", "text", finished, func(f archived) string { return f.Name }),
		columnOf("phase", "text", finished, func(f archived) string { return string(f.Phase) }),
		columnOf("digest", "text", finished, func(f archived) string { return f.Digest }),
		columnOf("finished_at", "timestamptz", finished, func(f archived) time.Time { return f.Times.Finished }),
		columnOf("record", "json", finished, func(f archived) string { return encoded(f.Record) }),
		columnOf("manifest", "json", finished, func(f archived) *string { return orNull(string(f.manifest)) }),
	})
	batch.Queue(`WITH gone AS (DELETE FROM workloads WHERE id = ANY(`+ids+`::uuid[]) RETURNING id, submission),
		texts AS (DELETE FROM manifests WHERE workload = ANY(`+ids+`::uuid[]) RETURNING workload, manifest)
		INSERT INTO archive (id, submission, queue, namespace, name, phase, digest, finished_at, record, manifest)
		SELECT f.id, coalesce(f.submission, gone.submission), f.queue, f.namespace, f.name, f.phase, f.digest, f.finished_at,
			f.record, coalesce(f.manifest, texts.manifest)
		FROM `+rows+` LEFT JOIN gone ON gone.id = f.id LEFT JOIN texts ON texts.workload = f.id`, p...)
}

func idsOf(finished []archived) []workload.ID {
	ids := make([]workload.ID, len(finished))
	for i, f := range finished {
		ids[i] = f.ID
	}
	return ids
}

func queueManifests(batch *pgx.Batch, added []state.Added) {
	if len(added) == 0 {
		return
	}
	ids, manifests := make(uuids, len(added)), make([]string, len(added))
	for i, a := range added {
		ids[i], manifests[i] = uuidText(a.ID), string(a.Manifest)
	}
	batch.Queue(`INSERT INTO manifests (workload, manifest) SELECT * FROM unnest($1::uuid[], $2::json[])`, ids, manifests)
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

// queueHistory writes the steps of workloads' lives.
func queueHistory(batch *pgx.Batch, c state.Changes) {
	if len(c.History) == 0 {
		return
	}
	var p parameters
	epoch, version := p.add(c.Epoch), p.add(c.Version)
	columns := []column{
		uuidColumn("workload", c.History, func(h state.HistoryRow) workload.ID { return h.Workload }),
		columnOf("at", "timestamptz", c.History, func(h state.HistoryRow) time.Time { return h.At }),
		columnOf("phase", "text", c.History, func(h state.HistoryRow) string { return string(h.Phase) }),
		columnOf("attempt", "int", c.History, func(h state.HistoryRow) int32 { return int32(h.Attempt) }),
		columnOf("cluster", "text", c.History, func(h state.HistoryRow) *string { return orNull(h.Cluster) }),
		jsonColumn("reason", c.History, func(h state.HistoryRow) (*workload.Reason, bool) { return h.Reason, h.Reason != nil }),
		columnOf("event_id", "text", c.History, func(h state.HistoryRow) *string { return orNull(h.EventID) }),
		jsonColumn("usage", c.History, func(h state.HistoryRow) (*workload.UsageStep, bool) { return h.Usage, h.Usage != nil }),
	}
	// Ordered, because the rows are numbered as they are inserted.
	batch.Queue(`INSERT INTO history (epoch, version, `+names(columns)+`)
		SELECT `+epoch+`, `+version+`, `+names(columns)+`
		FROM `+p.rows("h", append(columns, placeColumn(len(c.History))))+` ORDER BY place`, p...)
}

// encoded returns plain data as JSON; such data can always be encoded.
func encoded(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic("plain data cannot be encoded: " + err.Error())
	}
	return string(data)
}

func orderOrNull(order int64) *int64 {
	if order == 0 {
		return nil
	}
	return &order
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
