// Package submission makes the message that submits a manifest, and sends it. It is not for
// judging the manifest, which intake does.
package submission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/manifest"
)

// DefaultSource is the CloudEvents source of what this program publishes, unless
// the user says otherwise.
const DefaultSource = "muster-cli"

// sendTimeout bounds the wait for NATS to store a message.
const sendTimeout = 10 * time.Second

// ErrNotStored is wrapped when NATS does not confirm a message in time.
var ErrNotStored = errors.New("NATS did not confirm the message")

// Options are who submits and how. An empty id means a fresh one.
type Options struct {
	ID, Source string
	Priority   int32
	// PriorityClass is the name of one; with it Priority is 0.
	PriorityClass string
	// User is the user of NATS under whose name it is sent; empty for none.
	User string
}

// Submission is a manifest ready to be sent.
type Submission struct {
	Document manifest.Document
	Workload workload.ID // the id that the workload will have
	// messageID keeps the server from storing the same submission twice within
	// its window. The CloudEvents id alone does not serve: the same id with other
	// content has to arrive, to be refused.
	messageID string
	encoded   []byte
}

// submitEvent is a submission with the CloudEvents extensions that Muster knows.
type submitEvent struct {
	event.Envelope
	Priority      *int32 `json:"priority,omitempty"`
	PriorityClass string `json:"priorityclass,omitempty"`
}

// New makes the CloudEvent for a manifest.
func New(document manifest.Document, o Options, at time.Time) (Submission, error) {
	e := submitEvent{PriorityClass: o.PriorityClass, Envelope: event.Envelope{
		SpecVersion: event.SpecVersion, ID: o.ID, Source: o.Source, Type: event.SubmitType, Time: at.UTC(),
	}}
	if e.ID == "" {
		e.ID = event.NewID()
	}
	if o.Priority != 0 {
		e.Priority = &o.Priority
	}
	switch {
	case document.JSON:
		e.DataContentType, e.Data = "application/json", document.Raw
	case utf8.Valid(document.Raw):
		text, err := json.Marshal(string(document.Raw))
		if err != nil {
			return Submission{}, fmt.Errorf("encode %s: %w", document, err)
		}
		e.DataContentType, e.Data = "application/yaml", text
	default: // a JSON string would change the bytes; what they mean is for Muster to say
		e.DataContentType, e.DataBase64 = "application/yaml", document.Raw
	}
	encoded, err := json.Marshal(e)
	if err != nil {
		return Submission{}, fmt.Errorf("encode submission of %s: %w", document, err)
	}
	return Submission{Document: document, Workload: event.SubmissionID(o.User, e.Source, e.ID), messageID: messageID(e), encoded: encoded}, nil
}

// messageID is made of the content of a submission, without the time.
func messageID(e submitEvent) string {
	digest := sha256.New()
	priority := int32(0)
	if e.Priority != nil {
		priority = *e.Priority
	}
	fmt.Fprintf(digest, "%q %q %d %q %q ", e.Source, e.ID, priority, e.PriorityClass, e.DataContentType)
	digest.Write(e.Data)
	digest.Write(e.DataBase64)
	return hex.EncodeToString(digest.Sum(nil))
}

// MessageID is the JetStream message id of the submission to a queue: the same for
// the same submission, and another for everything else. The server stores
// repetitions; the id shows which answer belongs to which message.
func (s Submission) MessageID(queue string) string { return s.messageID + "/" + queue }

// Send stores the submission in the queue's stream, under the name of a user of NATS
// unless that is empty.
func (s Submission) Send(ctx context.Context, b *bus.Bus, queue, user string) error {
	subject := event.SubmitSubject(queue)
	if user != "" {
		subject = event.SubmitSubjectAs(queue, user)
	}
	err := send(ctx, b, subject, s.MessageID(queue), s.encoded)
	switch {
	case errors.Is(err, bus.ErrTooLarge):
		err = fmt.Errorf("%w; want at most %d bytes", err, event.MaxSubmission)
	case errors.Is(err, bus.ErrFull):
		err = fmt.Errorf("queue %q, or the stream of all queues, is full of unread submissions; submit the same again later: %w", queue, err)
	}
	if err != nil {
		return fmt.Errorf("submit %s: %w", s.Document, err)
	}
	return nil
}

func send(ctx context.Context, b *bus.Bus, subject, id string, encoded []byte) error {
	bounded, cancel := context.WithTimeoutCause(ctx, sendTimeout, ErrNotStored)
	defer cancel()
	published, err := b.PublishEncoded(subject, id, encoded, 0)
	if err != nil {
		return err
	}
	err = published.Wait(bounded)
	if err != nil && errors.Is(context.Cause(bounded), ErrNotStored) {
		return fmt.Errorf("%w within %s: %w", ErrNotStored, sendTimeout, err)
	}
	return err
}
