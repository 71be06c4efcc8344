package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
)

// ErrTooLarge is wrapped by Publish for an event above the server's limit.
var ErrTooLarge = errors.New("event is larger than the server accepts")

// ErrFull is wrapped by Publish when the server takes no more of the subject or
// the stream, or has no room at all. What is published later may be taken.
var ErrFull = errors.New("NATS has no room for it: try again later")

// ErrInProcess is wrapped by Publish when the server has another message of the same id that
// it has not stored yet. It may have lost that one, and refuses the id for two minutes.
var ErrInProcess = errors.New("NATS has not stored an earlier message of the same id yet")

// Publish stores the event and waits until the server has it. The event's id is
// the message id, so a repetition within the dedupe window is dropped by the
// server.
func (b *Bus) Publish(ctx context.Context, subject string, e event.Envelope) error {
	published, err := b.PublishAsync(subject, e)
	if err != nil {
		return err
	}
	return published.Wait(ctx)
}

// Published is an event on its way to the server.
type Published struct {
	subject, id string
	future      jetstream.PubAckFuture
	storage     *Storage                              // where it is noted whether it was stored
	confirm     func(context.Context) (uint64, error) // instead of future
}

// PublishedBy returns an event whose storage another party than NATS confirms, when it is
// stored: for simulations.
func PublishedBy(confirm func(context.Context) (sequence uint64, err error)) Published {
	return Published{confirm: confirm}
}

// Wait returns nil when the server has stored the event.
func (p Published) Wait(ctx context.Context) error {
	_, err := p.Stored(ctx)
	return err
}

// Stored waits until the server has stored the event and returns its place in
// the stream, at most for Options.AnswerTimeout. Errors may wrap ErrNoStream,
// ErrOvertaken or context.DeadlineExceeded.
func (p Published) Stored(ctx context.Context) (sequence uint64, err error) {
	if p.confirm != nil {
		return p.confirm(ctx)
	}
	select {
	case ack := <-p.future.Ok():
		p.storage.Note(p.subject, nil, time.Now())
		return ack.Sequence, nil
	case err = <-p.future.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	if errors.Is(err, jetstream.ErrAsyncPublishTimeout) {
		err = fmt.Errorf("NATS has not confirmed that it stored it: %w: %w", context.DeadlineExceeded, err)
	}
	p.storage.Note(p.subject, err, time.Now())
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders):
		err = fmt.Errorf("%w, or too few of its servers are there to store anything; try again: %w", ErrNoStream, err)
	case errors.As(err, &refused) && slices.Contains(overtaken(), refused.ErrorCode):
		err = fmt.Errorf("%w: %w", ErrOvertaken, err)
	case errors.As(err, &refused) && refused.ErrorCode == inProcess:
		err = fmt.Errorf("%w: %w", ErrInProcess, err)
	case errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		err = fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.As(err, &refused) && slices.Contains(full(), refused.ErrorCode):
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return 0, fmt.Errorf("publish event %q on %s: %w", p.id, p.subject, err)
}

// inProcess is the server's JSStreamDuplicateMessageConflict.
const inProcess jetstream.ErrorCode = 10158

// overtaken are the server's errors that mean that something else is last.
func overtaken() []jetstream.ErrorCode {
	const wrongLastID = 10070 // JSStreamWrongLastMsgIDErrF in its errors.json
	return []jetstream.ErrorCode{jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, wrongLastID}
}

// Errors of the server that has no room, by their numbers in its errors.json.
const (
	accountResources      jetstream.ErrorCode = 10002
	insufficientResources jetstream.ErrorCode = 10023
	memoryResources       jetstream.ErrorCode = 10028
)

// full are the server's errors that mean that there is no room, by their numbers in
// its errors.json.
func full() []jetstream.ErrorCode {
	const (
		storeFailed     = 10077 // the limits of a stream, among others
		tooManyRequests = 10167 // messages come faster than the stream stores them
	)
	return []jetstream.ErrorCode{accountResources, insufficientResources, memoryResources, storageResources, storeFailed, tooManyRequests}
}

// PublishAsync sends the event without waiting for the server. Events are
// stored in the order of the calls.
func (b *Bus) PublishAsync(subject string, e event.Envelope) (Published, error) {
	data, err := e.Encode()
	if err != nil {
		return Published{}, err
	}
	return b.PublishEncoded(subject, e.ID, data, 0)
}

// PublishEncoded sends an event that is encoded already. With a ttl the message
// vanishes from the stream after it; at least a second.
func (b *Bus) PublishEncoded(subject, id string, encoded []byte, ttl time.Duration) (Published, error) {
	return b.publish(subject, id, encoded, ttl)
}

// PublishAfter is PublishEncoded of a message that the server takes only if the
// subject's last one is that of the given sequence; 0 means that it has none.
func (b *Bus) PublishAfter(subject, id string, encoded []byte, ttl time.Duration, last uint64) (Published, error) {
	return b.publish(subject, id, encoded, ttl, jetstream.WithExpectLastSequencePerSubject(last))
}

// End is the last message that a stream has ever had.
type End struct {
	Sequence uint64 // 0 when it has had none
	// ID under which it was published; empty when that is not known. A publisher that
	// does not wait for the answers needs it: others may have brought the stream to
	// the sequence that it expects.
	ID string
}

// PublishNext is PublishEncoded of a message that the server takes only if the
// stream ends there.
func (b *Bus) PublishNext(subject, id string, encoded []byte, ttl time.Duration, end End) (Published, error) {
	options := []jetstream.PublishOpt{jetstream.WithExpectLastSequence(end.Sequence)}
	if end.ID != "" {
		options = append(options, jetstream.WithExpectLastMsgID(end.ID))
	}
	return b.publish(subject, id, encoded, ttl, options...)
}

func (b *Bus) publish(subject, id string, encoded []byte, ttl time.Duration, options ...jetstream.PublishOpt) (Published, error) {
	options = append(options, jetstream.WithMsgID(id), jetstream.WithStallWait(stallTimeout))
	if ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(ttl))
	}
	message := &nats.Msg{Subject: subject, Data: encoded}
	if parent := event.TraceparentOf(encoded); parent != "" {
		message.Header = nats.Header{tracing.Header: {parent}}
	}
	future, err := b.js.PublishMsgAsync(message, options...)
	if errors.Is(err, nats.ErrMaxPayload) {
		return Published{}, fmt.Errorf("publish event %q of %d bytes on %s: %w", id, len(encoded), subject, ErrTooLarge)
	}
	if err != nil {
		return Published{}, fmt.Errorf("publish event %q on %s: %w", id, subject, err)
	}
	return Published{subject: subject, id: id, future: future, storage: &b.storage}, nil
}
