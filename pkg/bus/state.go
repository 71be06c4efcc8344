package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrOvertaken is wrapped by Published.Stored when the last message, of the subject
// or of the stream, is not the one that the publisher expected.
var ErrOvertaken = errors.New("what is last is not what was expected to be")

// StreamState is what a stream has, as far as its loss would show in it.
type StreamState struct {
	Created time.Time
	// Last is the sequence of the last message ever stored; it stays when messages
	// expire.
	Last uint64
	// First is the sequence of the first message that the stream still has; one more
	// than Last when it has none.
	First uint64
	// Oldest is when the first message was stored; zero when the stream has none.
	Oldest time.Time
	// Begin is the sequence of the first message that the stream had, or will have.
	Begin uint64
}

// State returns the state of a stream. The error wraps ErrNoStream when there is
// none.
func (b *Bus) State(ctx context.Context, stream string) (StreamState, error) {
	s, err := b.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return StreamState{}, fmt.Errorf("read the state of stream %s: %w: %w", stream, ErrNoStream, err)
	}
	if err != nil {
		return StreamState{}, fmt.Errorf("read the state of stream %s: %w", stream, err)
	}
	info := s.CachedInfo()
	state := StreamState{Created: info.Created, Last: info.State.LastSeq, First: info.State.FirstSeq}
	state.Begin = max(1, info.Config.FirstSeq)
	if info.State.Msgs > 0 {
		state.Oldest = info.State.FirstTime
	}
	return state, nil
}

// Subjects returns the subjects of a stream that match and have a message.
func (b *Bus) Subjects(ctx context.Context, stream, filter string) (map[string]bool, error) {
	s, err := b.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("read the state of stream %s: %w: %w", stream, ErrNoStream, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of stream %s: %w", stream, err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("list subjects %s of stream %s: %w", filter, stream, err)
	}
	subjects := make(map[string]bool, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		subjects[subject] = true
	}
	return subjects, nil
}

// LastMessage returns the last message of a subject; nil when there is none.
func (b *Bus) LastMessage(ctx context.Context, stream, subject string) (*Delivery, error) {
	s, err := b.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("read the state of stream %s: %w: %w", stream, ErrNoStream, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of stream %s: %w", stream, err)
	}
	msg, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the last message on %s of stream %s: %w", subject, stream, err)
	}
	return &Delivery{Subject: msg.Subject, Headers: msg.Header, Data: msg.Data, Stored: msg.Time, Sequence: msg.Sequence}, nil
}

// againBegins separates the id of a message from the suffix that Again has added.
const againBegins = "#again-"

// Again returns an id under which the server stores a message once more, although it knows
// the id of the message. The same suffix gives the same id.
func Again(id, suffix string) string { return id + againBegins + suffix }

// MessageID is the id of the message, without what Again has added.
func (d Delivery) MessageID() string {
	id, _, _ := strings.Cut(d.Headers.Get(jetstream.MsgIDHeader), againBegins)
	return id
}

// Original returns a republished message with its place in the stream that it was published
// to; any other message as it is.
func (d Delivery) Original() Delivery {
	sequence, err := strconv.ParseUint(d.Headers.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return d
	}
	stored, err := time.Parse(time.RFC3339Nano, d.Headers.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return d
	}
	d.Sequence, d.Stored = sequence, stored
	return d
}
