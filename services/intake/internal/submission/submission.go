// Package submission turns a message on a submit subject into an accepted workload or
// a rejection with its reason.
//
// It is pure: the same message always gives the same result, event ids included, so a
// redelivery changes nothing. It is not for checking whether the queue exists and may
// use the namespace, which queue-manager does.
package submission

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// source is the CloudEvents source of the results.
const source = "muster/intake"

// Message is a submission as it arrived.
type Message struct {
	Subject string
	// Submitter is the sender's name, taken from the connection.
	Submitter string
	Headers   map[string][]string
	Data      []byte
	Sequence  uint64 // in the stream
	Stored    time.Time
	batch
}

// Result is the message to publish for a submission.
type Result struct {
	Subject string
	Event   event.Envelope
	// Workload is the id that the submission has, or would have if it were accepted; it
	// may be empty.
	Workload workload.ID
	// MessageID is that of the message, and Digest that of its content; both are empty when it
	// was refused.
	MessageID, Digest string
	// Rejection is why it was refused; nil when it was accepted.
	Rejection *workload.Reason
	// Queue is the queue of the subject; Traceparent is the submitter's, or empty.
	Queue, Traceparent string
}

// Read returns the result of a message; the operator decides which pods its manifest
// becomes. An error means that Muster itself failed and there is nothing to publish.
func Read(operator ray.Operator, m Message) (result Result, err error) {
	s := &submission{operator: operator, message: m, queue: queueOf(m)}
	accepted, err := s.accept()
	if err != nil {
		return s.reject(err)
	}
	accepted.Former = s.former
	// The event's id includes the message: submitting again is another message with an
	// answer of its own; a redelivery is the same event.
	id := fmt.Sprintf("submitted/%s/%s/%d/%d%s", s.id, accepted.Workload.Digest, m.Sequence, m.Stored.UnixNano(), m.place())
	envelope, err := event.New(id, source, m.Stored, accepted)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Subject: event.WorkloadSubject(s.queue), Event: envelope, Workload: s.id, Queue: s.queue, Traceparent: s.envelope.Traceparent,
		MessageID: accepted.MessageID, Digest: accepted.Workload.Digest,
	}, nil
}

// Reject rejects a message for a cause outside of its content.
func Reject(m Message, cause error) (Result, error) {
	s := &submission{message: m, queue: queueOf(m)}
	_ = s.open() // for the id alone
	return s.reject(cause)
}

// RejectUnread is Reject without reading the message.
func RejectUnread(m Message, cause error) (Result, error) {
	return (&submission{message: m, queue: queueOf(m)}).reject(cause)
}

func queueOf(m Message) string {
	queue, _ := event.SubmittedBy(m.Subject)
	return queue
}

// submission is a message while it is read.
type submission struct {
	operator ray.Operator
	message  Message
	queue    string
	envelope event.Envelope
	id       workload.ID
	// former is the id that an earlier version would have given, if it differs.
	former workload.ID
	rank
}

// identify derives the workload's id. It includes the submitter: over NATS the user in
// the subject, over HTTP the source.
func (s *submission) identify() {
	_, user := event.SubmittedBy(s.message.Subject)
	s.id = event.SubmissionID(user, s.envelope.Source, s.envelope.ID)
	if user != "" {
		s.former = event.WorkloadID(s.envelope.Source, s.envelope.ID)
	}
}

// claimsReservedSource reports whether a NATS message names a source that the HTTP API
// or the Kubernetes controller derives its ids from.
func (s *submission) claimsReservedSource() bool {
	prefix, _, named := strings.Cut(s.envelope.Source, "/")
	return named && strings.HasPrefix(s.message.Submitter, workload.ByNATS) && (prefix == workload.ByHTTP || prefix == workload.ByKubernetes)
}

// accept returns the workload. Every error is a reason to reject, and so is a panic
// while reading the message.
func (s *submission) accept() (accepted *event.WorkloadSubmitted, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("cannot read the submission: %v", cause)
		}
	}()
	if err := s.message.fault; err != nil {
		return nil, err
	}
	err = s.open()
	if size := s.size(); size > event.MaxSubmission {
		return nil, fmt.Errorf("the submission has %d bytes; at most %d are accepted: move files and scripts to a ConfigMap or an image", size, event.MaxSubmission)
	}
	if err != nil {
		return nil, err
	}
	if err := s.checkAttributes(); err != nil {
		return nil, err
	}
	if !workload.ValidName(s.queue) {
		return nil, fmt.Errorf("queue %q: want a name of at most 63 lower-case letters, digits and dashes", s.queue)
	}
	if s.envelope.Type != event.SubmitType {
		return nil, fmt.Errorf("CloudEvents attribute \"type\" is %q; want %q", shown(s.envelope.Type, longestShown), event.SubmitType)
	}
	manifest, err := manifestOf(s.envelope)
	if err != nil {
		return nil, err
	}
	if wrapped, is, err := s.appWrapper(manifest); is || err != nil {
		return wrapped, err
	}
	object, err := s.operator.Read(manifest)
	if err != nil {
		return nil, err
	}
	labels, err := checkMetadata(object.Manifest)
	if err != nil {
		return nil, err
	}
	if err := s.checkQueueLabel(labels); err != nil {
		return nil, err
	}
	class, err := s.priorityClass(appwrapper.PriorityClassOf(labels))
	if err != nil {
		return nil, err
	}
	digest := s.digest(object.Manifest)
	if object, err = ray.Named(object, s.id); err != nil {
		return nil, err
	}
	return &event.WorkloadSubmitted{Manifest: object.Manifest, MessageID: s.messageID(), PriorityClass: class, Warnings: boundWarnings(object.Warnings), Workload: workload.Workload{
		ID: s.id, Queue: s.queue, Namespace: object.Namespace, Kind: object.Kind, Name: object.Name,
		Priority: s.priority, Digest: digest, PodSets: object.PodSets, Life: object.Life, Submitter: s.message.Submitter,
	}}, nil
}

// checkQueueLabel refuses a manifest whose label names another queue than the submission:
// which of them is meant, only its author knows. Kueue's label is not looked at, because the
// same manifest may be for Kueue elsewhere.
func (s *submission) checkQueueLabel(labels map[string]any) error {
	named, there := labels[kube.QueueNameLabel]
	if !there || named == "" || named == s.queue {
		return nil
	}
	return fmt.Errorf("metadata.labels[%s]: is %s, but the submission is to queue %q; submit it to the queue that the label names, or change the label",
		kube.QueueNameLabel, fault.Quote(fmt.Sprint(named)), s.queue)
}

// checkMetadata returns the labels. It refuses the annotations that the Kubernetes
// controller sets, with which a submission could take over another user's suspended
// object or identity. It also refuses finalizers and owner references, with which the
// object could outlive its deletion or seem controlled by another object.
func checkMetadata(manifest json.RawMessage) (labels map[string]any, err error) {
	var object struct {
		Metadata struct {
			Labels          map[string]any `json:"labels"`
			Annotations     map[string]any `json:"annotations"`
			Finalizers      []any          `json:"finalizers"`
			OwnerReferences []any          `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(manifest, &object); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	for _, key := range []string{kube.SuspendedUIDKey, kube.IdentityKey} {
		if _, there := object.Metadata.Annotations[key]; there {
			return nil, fmt.Errorf("metadata.annotations[%s]: is set; remove it: only Muster sets it", key)
		}
	}
	if len(object.Metadata.Finalizers)+len(object.Metadata.OwnerReferences) > 0 {
		return nil, errors.New("metadata: has finalizers or ownerReferences; remove them: Muster alone decides how long the object lives")
	}
	return object.Metadata.Labels, nil
}

// reject returns a rejection on the events subject of the queue.
func (s *submission) reject(cause error) (Result, error) {
	reason := workload.Reason{Kind: workload.ReasonInvalid, Message: cause.Error()}
	envelope, err := event.New(
		fmt.Sprintf("rejected/%d/%d%s", s.message.Sequence, s.message.Stored.UnixNano(), s.message.place()), source, s.message.Stored,
		&event.WorkloadRejected{
			Workload: s.id, Queue: s.queue, Submission: shown(s.envelope.ID, longestID), Source: shown(s.envelope.Source, longestSource),
			MessageID: shown(s.messageID(), longestMessageID), Reason: reason,
		})
	if err != nil {
		return Result{}, err
	}
	return Result{Subject: event.EventsSubject(s.queue, s.id), Event: envelope, Workload: s.id, Queue: s.queue, Traceparent: s.envelope.Traceparent, Rejection: &reason}, nil
}
