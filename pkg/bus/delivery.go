package bus

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
)

// Delivery is one message as read. A delivery of Work must be settled with
// exactly one of Ack, Retry and Reject; on one of Follow they do nothing.
type Delivery struct {
	Subject string
	Headers nats.Header
	Data    []byte
	// Stored is when the server stored the message.
	Stored time.Time
	// Sequence is the message's place in its stream.
	Sequence uint64
	// Attempts counts the deliveries of this message, this one included.
	Attempts uint64

	settler Settler
}

// Settler settles a message with the server that delivered it. It has one method for each of
// the four verdicts of a handler, which no caller uses apart, so it is one interface.
type Settler interface {
	Ack() error
	NakWithDelay(delay time.Duration) error
	TermWithReason(reason string) error
	InProgress() error
}

// SettledBy returns the delivery as one that is settled with another party than
// NATS: for simulations.
func (d Delivery) SettledBy(s Settler) Delivery {
	d.settler = s
	return d
}

func newDelivery(msg jetstream.Msg, settle bool) Delivery {
	d := Delivery{Subject: msg.Subject(), Headers: msg.Headers(), Data: msg.Data()}
	if metadata, err := msg.Metadata(); err == nil {
		d.Stored, d.Sequence, d.Attempts = metadata.Timestamp, metadata.Sequence.Stream, metadata.NumDelivered
	}
	if settle {
		d.settler = msg
	}
	return d
}

// Settles reports whether the message is one of Work.
func (d Delivery) Settles() bool { return d.settler != nil }

// Event decodes the message. Errors wrap event.ErrMalformed or
// event.ErrUnknownType.
func (d Delivery) Event() (event.Envelope, event.Payload, error) {
	envelope, err := event.Parse(d.Data)
	if err != nil {
		return envelope, nil, fmt.Errorf("message %d on %s: %w", d.Sequence, d.Subject, err)
	}
	if parent := d.Headers.Get(tracing.Header); parent != "" {
		envelope.Traceparent = parent
	}
	payload, err := event.Decode(envelope)
	if err != nil {
		return envelope, nil, fmt.Errorf("message %d on %s: %w", d.Sequence, d.Subject, err)
	}
	return envelope, payload, nil
}

// Ack reports that the message is done with; it will not come again. An error of
// the connection means that it may come again, which readers must take anyway.
func (d Delivery) Ack() {
	if d.settler != nil {
		_ = d.settler.Ack()
	}
}

// Retry asks for the message again after the given time.
func (d Delivery) Retry(after time.Duration) {
	if d.settler != nil {
		_ = d.settler.NakWithDelay(after)
	}
}

// Reject ends the message for good; the reason goes to the server's
// advisories.
func (d Delivery) Reject(reason string) {
	if d.settler != nil {
		_ = d.settler.TermWithReason(reason)
	}
}

// Working keeps the server from delivering the message to another reader while
// it is being worked on.
func (d Delivery) Working() {
	if d.settler != nil {
		_ = d.settler.InProgress()
	}
}
