package store

import (
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

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

// queueLive writes live workloads, new and changed, and new reservations, in one
// statement: the guards compare the tables after each.
func queueLive(batch *pgx.Batch, added, updated []row, reserved []state.Reservation) {
	var p parameters
	changing := changingColumns(updated)
	created := append(fixedColumns(added), changingColumns(added)...)
	reservations := reservationColumns(reserved)
	sql := `WITH added AS (
			INSERT INTO workloads (` + names(created) + `) SELECT * FROM ` + p.rows("a", created) + `
		), changed AS (
			UPDATE workloads w SET ` + assignments("u", changing) + `
			FROM ` + p.rows("u", append(changing, idColumn(updated))) + ` WHERE w.id = u.id
		)
		INSERT INTO reservations (` + names(reservations) + `) SELECT * FROM ` + p.rows("r", reservations)
	batch.Queue(sql, p...)
}

func idColumn(rows []row) column {
	return uuidColumn("id", rows, func(r row) workload.ID { return r.ID })
}

// fixedColumns are those that a workload keeps from its submission to its end.
func fixedColumns(rows []row) []column {
	return []column{
		idColumn(rows),
		columnOf("submission", "bigint", rows, func(r row) int64 { return r.order }),
		columnOf("namespace", "text", rows, func(r row) string { return r.Namespace }),
		columnOf("kind", "text", rows, func(r row) string { return r.Kind }),
		columnOf("name", "text", rows, func(r row) string { return r.Name }),
		columnOf("digest", "text", rows, func(r row) string { return r.Digest }),
		columnOf("submitted_at", "timestamptz", rows, func(r row) time.Time { return r.Times.Submitted }),
		columnOf("life", "jsonb", rows, func(r row) string { return encoded(r.Life) }),
		columnOf("submitter", "text", rows, func(r row) string { return r.Submitter }),
	}
}

// changingColumns are those that a commit may change.
func changingColumns(rows []row) []column {
	return []column{
		uuidColumn("shape", rows, func(r row) string { return r.shape }),
		columnOf("gang", "int", rows, func(r row) int32 { return int32(r.Pods()) }),
		columnOf("phase", "text", rows, func(r row) string { return string(r.Phase) }),
		columnOf("attempt", "int", rows, func(r row) int32 { return int32(r.Attempt) }),
		columnOf("cluster", "text", rows, func(r row) *string { return orNull(r.Cluster) }),
		columnOf("holding", "bool", rows, func(r row) bool { return r.Holding }),
		columnOf("cancel_requested", "bool", rows, func(r row) bool { return r.CancelRequested }),
		jsonColumn("reason", rows, func(r row) (*workload.Reason, bool) { return r.Reason, r.Reason != nil }),
		timeColumn("admitted_at", rows, func(r row) time.Time { return r.Times.Admitted }),
		timeColumn("dispatched_at", rows, func(r row) time.Time { return r.Times.Dispatched }),
		timeColumn("running_at", rows, func(r row) time.Time { return r.Times.Running }),
		timeColumn("finished_at", rows, func(r row) time.Time { return r.Times.Finished }),
		columnOf("requeues", "int", rows, func(r row) int32 { return int32(r.Requeues) }),
		timeColumn("not_before", rows, func(r row) time.Time { return r.NotBefore }),
		timeColumn("evict_at", rows, func(r row) time.Time { return r.EvictAt }),
		columnOf("queue", "text", rows, func(r row) string { return r.Queue }), // of one that waits
		columnOf("priority", "int", rows, func(r row) int32 { return r.Priority }),
		jsonColumn("saved", rows, func(r row) (*workload.Saved, bool) { return r.Saved(), r.Saved() != nil }),
		jsonColumn("hold", rows, func(r row) (*workload.Hold, bool) { return r.Hold, r.Hold != nil }),
		jsonColumn("provisioning", rows, func(r row) (*workload.Provisioning, bool) { return r.Provisioning, r.Provisioning != nil }),
		jsonColumn("flavors", rows, func(r row) ([]workload.PodSetFlavors, bool) { return r.Flavors, r.Flavors != nil }),
	}
}

func reservationColumns(reserved []state.Reservation) []column {
	return []column{
		uuidColumn("workload", reserved, func(r state.Reservation) workload.ID { return r.Workload }),
		columnOf("attempt", "int", reserved, func(r state.Reservation) int32 { return int32(r.Attempt) }),
		columnOf("cluster", "text", reserved, func(r state.Reservation) string { return r.Cluster }),
		columnOf("node", "text", reserved, func(r state.Reservation) string { return r.Node }),
		columnOf("pod_set", "text", reserved, func(r state.Reservation) string { return r.PodSet }),
		columnOf("pods", "int", reserved, func(r state.Reservation) int32 { return int32(r.Pods) }),
		columnOf("hostname", "text", reserved, func(r state.Reservation) string { return r.Hostname }),
		columnOf("requests", "jsonb", reserved, func(r state.Reservation) string { return encoded(r.Requests) }),
		jsonColumn("charges", reserved, func(r state.Reservation) (*state.Charges, bool) { return r.Charges, r.Charges != nil }),
	}
}
