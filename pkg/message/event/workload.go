package event

import (
	"encoding/json"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// SubmitType is the type of a submission. Its data is a RayCluster or RayJob
// manifest: JSON, or YAML as a string (datacontenttype application/yaml).
const SubmitType = "dev.muster.workload.submit.v1"

// WorkloadSubmitted is published by intake for a submission that it accepted.
type WorkloadSubmitted struct {
	Workload workload.Workload `json:"workload"`
	// Manifest is the submitted object as JSON, named, otherwise untouched.
	Manifest json.RawMessage `json:"manifest"`
	// PriorityClass is the WorkloadPriorityClass that the submission names; empty
	// for none. Queue-manager gives the workload its value.
	PriorityClass string `json:"priorityClass,omitempty"`
	// MessageID is the JetStream message id (Nats-Msg-Id) of the submission; empty
	// when the submitter set none.
	MessageID string `json:"messageId,omitempty"`
	// Warnings name accepted settings that have no effect, or are most likely a
	// mistake.
	Warnings []string `json:"warnings,omitempty"`
	// Former is the id that an earlier version gave to the same submission; empty when
	// it is the same. A workload of the same submitter with this id is the same
	// workload.
	Former workload.ID `json:"former,omitempty"`
}

// EventType implements Payload.
func (*WorkloadSubmitted) EventType() string { return "dev.muster.workload.submitted.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadSubmitted) CloudEventSubject() string { return string(e.Workload.ID) }

// WorkloadRejected reports that a submission was refused for good, and why. It is
// published by intake for what it cannot read and by queue-manager for what it
// cannot accept.
type WorkloadRejected struct {
	// Workload is the id the submission would have had; empty when the message
	// had no readable id.
	Workload workload.ID `json:"workload,omitempty"`
	Queue    string      `json:"queue"`
	// Submission and Source are the CloudEvents id and source as received.
	Submission string `json:"submission,omitempty"`
	Source     string `json:"source,omitempty"`
	// MessageID is the JetStream message id of the refused submission. It distinguishes
	// submitters that used the same source and id for other content.
	MessageID string          `json:"messageId,omitempty"`
	Reason    workload.Reason `json:"reason"`
}

// EventType implements Payload.
func (*WorkloadRejected) EventType() string { return "dev.muster.workload.rejected.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadRejected) CloudEventSubject() string { return string(e.Workload) }

// WorkloadChanged reports the life of a workload: one event for each phase it enters
// and each change of its reason. It is published by queue-manager after the commit of
// what it tells.
type WorkloadChanged struct {
	workload.Record
	// Warnings are those of the submission. Only the event of its acceptance has them,
	// and only when it is published first.
	Warnings []string `json:"warnings,omitempty"`
	// Certificate proves that a waiting workload cannot start now (certificate.Document).
	// Few events have one: it is small, and no search was needed for it.
	Certificate json.RawMessage `json:"certificate,omitempty"`
}

// EventType implements Payload.
func (*WorkloadChanged) EventType() string { return "dev.muster.workload.changed.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadChanged) CloudEventSubject() string { return string(e.ID) }

// Request is an event that asks something of a workload that was submitted. It may come
// before the submission, and after the end.
type Request interface {
	Payload
	// About returns the workload.
	About() workload.ID
}

// WorkloadCancel asks to end a workload, whatever phase it is in.
type WorkloadCancel struct {
	Workload workload.ID `json:"workload"`
	Why      string      `json:"why,omitempty"`
	// Submitter is the submitter for whom intake asks, and must be allowed in the
	// workload's queue; empty for users whom NATS lets publish this event.
	Submitter string `json:"submitter,omitempty"`
}

// EventType implements Payload.
func (*WorkloadCancel) EventType() string { return "dev.muster.workload.cancel.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadCancel) CloudEventSubject() string { return string(e.Workload) }

// About implements Request.
func (e *WorkloadCancel) About() workload.ID { return e.Workload }

// WorkloadRelease asks to end a workload and to free its places at once, although
// its objects may still exist. It is for operators, when what exists cannot be seen
// or removed. NATS lets no tenant publish it.
type WorkloadRelease struct {
	Workload workload.ID `json:"workload"`
	// By is the name that the operator's client gives.
	By string `json:"by"`
	// Why is kept with the workload.
	Why string `json:"why"`
}

// EventType implements Payload.
func (*WorkloadRelease) EventType() string { return "dev.muster.workload.release.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadRelease) CloudEventSubject() string { return string(e.Workload) }

// About implements Request.
func (e *WorkloadRelease) About() workload.ID { return e.Workload }

// WorkloadMove asks to move a workload that waits to another queue. It keeps its id, its
// objects' name and its place by submission.
type WorkloadMove struct {
	Workload workload.ID `json:"workload"`
	// Queue is the queue to wait in from now on.
	Queue string `json:"queue"`
	// By is the name that the operator's client gives; over HTTP it is the caller's.
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
	// Submitter is the submitter for whom intake asks, and must be allowed in both queues;
	// empty for users whom NATS lets publish this event.
	Submitter string `json:"submitter,omitempty"`
}

// EventType implements Payload.
func (*WorkloadMove) EventType() string { return "dev.muster.workload.move.v1" }

// CloudEventSubject implements Payload.
func (e *WorkloadMove) CloudEventSubject() string { return string(e.Workload) }

// About implements Request.
func (e *WorkloadMove) About() workload.ID { return e.Workload }

// RequestWaits reports that a request came before the submission of its workload, and waits for
// it. It is published by queue-manager; the request is taken in when the submission comes.
type RequestWaits struct {
	Workload workload.ID `json:"workload"`
	Queue    string      `json:"queue"`
	// Request is the type of the request.
	Request string `json:"request"`
	// Message is what it waits for, for people.
	Message string `json:"message"`
	// Until is when the request is given up; it is kept as a dead letter then.
	Until time.Time `json:"until"`
}

// EventType implements Payload.
func (*RequestWaits) EventType() string { return "dev.muster.workload.request-waits.v1" }

// CloudEventSubject implements Payload.
func (e *RequestWaits) CloudEventSubject() string { return string(e.Workload) }
