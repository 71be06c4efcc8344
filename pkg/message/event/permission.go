package event

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// PermissionAsked asks that a cluster may keep the objects that need a permission
// (GangCommand.Permitted). The permission counts from the time of the question, by the clock
// of the dispatcher, so an answer that comes late gives less time, never more. Last value
// per cluster.
type PermissionAsked struct {
	Cluster string `json:"cluster"`
	// Session is the epoch of the dispatcher's lease, as in GangStatus.
	Session int64 `json:"session"`
	// Number counts the questions of the session.
	Number int64 `json:"number"`
	// For is for how long: at least as long as what is left of the present permission.
	For workload.Duration `json:"for"`
}

// EventType implements Payload.
func (*PermissionAsked) EventType() string { return "dev.muster.permission.asked.v1" }

// CloudEventSubject implements Payload.
func (e *PermissionAsked) CloudEventSubject() string { return e.Cluster }

// PermissionGranted answers PermissionAsked. Queue-manager has committed it, so no replaced
// leader grants one. Last value per cluster.
type PermissionGranted struct {
	Cluster string `json:"cluster"`
	// Session and Number are the question's, and so is For. Without Number and For it answers
	// none: gangs of the cluster have failed over, and it gets no gang until it asks again.
	Session int64             `json:"session"`
	Number  int64             `json:"number"`
	For     workload.Duration `json:"for"`
}

// EventType implements Payload.
func (*PermissionGranted) EventType() string { return "dev.muster.permission.granted.v1" }

// CloudEventSubject implements Payload.
func (e *PermissionGranted) CloudEventSubject() string { return e.Cluster }

// PermissionMost bounds a permission: the gangs of a lost cluster start nowhere else before it
// has run out.
const PermissionMost = time.Hour
