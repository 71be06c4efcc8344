package event

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// WorkloadHold asks to keep a workload that waits from admission, or to admit it again. It
// keeps its place in the queue.
type WorkloadHold struct {
	Workload workload.ID `json:"workload"`
	// Resume ends the hold.
	Resume bool `json:"resume,omitempty"`
	// By is the name that the operator's client gives; over HTTP it is the caller's.
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
	// Submitter is the submitter for whom intake asks, and must be allowed in the
	// workload's queue; empty for operators, whose holds a submitter does not end.
	Submitter string `json:"submitter,omitempty"`
}

// EventType implements Payload.
func (*WorkloadHold) EventType() string { return "dev.muster.workload.hold.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadHold) CloudEventSubject() string { return string(e.Workload) }

// About implements Request.
func (e *WorkloadHold) About() workload.ID { return e.Workload }

// WorkloadRequeue asks to evict a workload that has been admitted. It keeps its place by
// submission, and the next attempt may begin at once. It is no fault of the workload.
type WorkloadRequeue struct {
	Workload workload.ID `json:"workload"`
	// Attempt is the one to take down; 0 is the present one. With it a message that comes
	// again does not take down the next attempt.
	Attempt int `json:"attempt,omitempty"`
	// By is the name that the operator's client gives; over HTTP it is the caller's.
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
	// Submitter is the submitter for whom intake asks, and must be allowed in the
	// workload's queue; empty for operators.
	Submitter string `json:"submitter,omitempty"`
}

// EventType implements Payload.
func (*WorkloadRequeue) EventType() string { return "dev.muster.workload.requeue.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadRequeue) CloudEventSubject() string { return string(e.Workload) }

// About implements Request.
func (e *WorkloadRequeue) About() workload.ID { return e.Workload }

// WorkloadCheckpoint reports that a workload has saved its work, so that its eviction loses
// only what comes after that. Reports that are less than ten seconds apart count as one, and
// one about a time before the admission of the attempt counts for nothing.
type WorkloadCheckpoint struct {
	Workload workload.ID `json:"workload"`
	// Attempt is the one that has saved its work; 0 is the present one.
	Attempt int `json:"attempt,omitempty"`
	// At is when it did so; a time to come counts as that of the report, and so does none.
	At time.Time `json:"at,omitzero"`
	// By is the name that the client gives; over HTTP it is the caller's.
	By string `json:"by"`
	// Submitter is the submitter for whom intake reports, and must be allowed in the
	// workload's queue; empty for operators.
	Submitter string `json:"submitter,omitempty"`
}

// EventType implements Payload.
func (*WorkloadCheckpoint) EventType() string { return "dev.muster.workload.checkpoint.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadCheckpoint) CloudEventSubject() string { return string(e.Workload) }

// About implements Request.
func (e *WorkloadCheckpoint) About() workload.ID { return e.Workload }

// WorkloadPriority asks for another priority of a workload that waits or runs. It is for
// operators: no limit of the queue applies. NATS lets no tenant publish it.
type WorkloadPriority struct {
	Workload workload.ID `json:"workload"`
	// Priority is the value that counts from now on; a higher one comes first.
	Priority int32 `json:"priority"`
	// By is the name that the operator's client gives; over HTTP it is the caller's.
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
}

// EventType implements Payload.
func (*WorkloadPriority) EventType() string { return "dev.muster.workload.priority.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadPriority) CloudEventSubject() string { return string(e.Workload) }

// About implements Request.
func (e *WorkloadPriority) About() workload.ID { return e.Workload }
