package bus

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// Headers of messages that nobody could take, beside those that they had.
const (
	deadReasonHeader   = "Muster-Reason"
	deadSubjectHeader  = "Muster-Subject"
	deadStoredHeader   = "Muster-Stored"
	deadAttemptsHeader = "Muster-Attempts"
)

// serverHeaders begin the headers that tell the server what to do with a message.
const serverHeaders = "Nats-"

// buryRetryAfter is the pause before a message comes again that could not be kept.
const buryRetryAfter = 5 * time.Second

// Bury gives a message of Work up for good and keeps it with the reason, for people
// to look at. When it cannot be kept it comes again later; others do not wait for
// it.
func (b *Bus) Bury(ctx context.Context, d Delivery, reason string) {
	dead := &nats.Msg{Subject: DeadSubject(d.Subject), Data: d.Data, Header: nats.Header{}}
	for key, values := range d.Headers {
		if !strings.HasPrefix(key, serverHeaders) {
			dead.Header[key] = values
		}
	}
	dead.Header.Set(deadReasonHeader, oneLine(reason))
	dead.Header.Set(deadSubjectHeader, d.Subject)
	dead.Header.Set(deadStoredHeader, d.Stored.UTC().Format(time.RFC3339Nano))
	dead.Header.Set(deadAttemptsHeader, fmt.Sprint(d.Attempts))
	_, err := b.js.PublishMsg(ctx, dead, jetstream.WithMsgID(fmt.Sprintf("dead/%s/%d/%d", d.Subject, d.Sequence, d.Stored.UnixNano())))
	if err != nil {
		b.logger.Warn("a message that nobody can take could not be kept; it comes again", zap.String("subject", d.Subject),
			zap.String("reason", reason), zap.Error(err))
		d.Retry(buryRetryAfter)
		return
	}
	d.Reject(reason)
}

// reasonMost bounds a reason in a header, in bytes.
const reasonMost = 2000

func oneLine(text string) string {
	line := []byte(text)
	if len(line) > reasonMost {
		line = line[:reasonMost]
	}
	for i, c := range line {
		if c < ' ' {
			line[i] = ' '
		}
	}
	return string(line)
}

// Dead is a message that nobody could take.
type Dead struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"sequence"` // in the stream of such messages
	At       time.Time `json:"at"`       // when it was given up
	Stored   time.Time `json:"stored"`   // when it had come
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
}

// Buried returns the messages that nobody could take and that are kept, the oldest
// first.
func (b *Bus) Buried(ctx context.Context) ([]Dead, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following, err := b.Replay(ctx, DeadStream, DeadFilter)
	if err != nil {
		return nil, err
	}
	all := []Dead{}
	err = drain(ctx, following, func(d Delivery) {
		stored, _ := time.Parse(time.RFC3339Nano, d.Headers.Get(deadStoredHeader))
		all = append(all, Dead{
			Subject: d.Headers.Get(deadSubjectHeader), Sequence: d.Sequence, At: d.Stored, Stored: stored,
			Reason: d.Headers.Get(deadReasonHeader), Message: string(d.Data),
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", DeadStream, err)
	}
	return all, nil
}
