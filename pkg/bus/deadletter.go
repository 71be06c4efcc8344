package bus

import (
	"context"
	"errors"
	"fmt"
	"muster.dev/muster/pkg/message/event"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// Headers of dead letters, beside those of the message.
const (
	deadReasonHeader   = "Muster-Reason"
	deadSubjectHeader  = "Muster-Subject"
	deadStoredHeader   = "Muster-Stored"
	deadAttemptsHeader = "Muster-Attempts"
)

// serverHeaders begin the headers by which the server handles a message.
const serverHeaders = "Nats-"

// deadLetterRetryAfter is the pause before the redelivery of a message that could not be kept.
const deadLetterRetryAfter = 5 * time.Second

// PublishDeadLetter ends a message of Work for good and keeps it with the reason, for people
// to look at. When it cannot be kept it comes again later; others do not wait for
// it.
func (b *Bus) PublishDeadLetter(ctx context.Context, d Delivery, reason string) {
	if err := b.StoreDeadLetter(ctx, d, reason); err != nil {
		b.logger.Warn("cannot store a dead letter; retrying", zap.String("subject", d.Subject),
			zap.String("reason", reason), zap.Error(err), zap.Duration("after", deadLetterRetryAfter))
		d.Retry(deadLetterRetryAfter)
		return
	}
	d.Reject(reason)
}

// ErrNotKept is wrapped by StoreDeadLetter where the server answers that it does not keep the
// message. Trying again is of no use before an operator has helped, with room on the disk
// or a larger limit. A stream that does
// not answer is no such answer: the next term makes it again if it is gone.
var ErrNotKept = errors.New("the server does not keep the dead letter")

// StoreDeadLetter keeps a message with the reason, as PublishDeadLetter does, and settles nothing.
func (b *Bus) StoreDeadLetter(ctx context.Context, d Delivery, reason string) error {
	dead := &nats.Msg{Subject: event.DeadSubject(d.Subject), Data: d.Data, Header: nats.Header{}}
	for key, values := range d.Headers {
		if !strings.HasPrefix(key, serverHeaders) {
			dead.Header[key] = values
		}
	}
	dead.Header.Set(deadReasonHeader, oneLine(reason))
	dead.Header.Set(deadSubjectHeader, d.Subject)
	dead.Header.Set(deadStoredHeader, d.Stored.UTC().Format(time.RFC3339Nano))
	dead.Header.Set(deadAttemptsHeader, fmt.Sprint(d.Attempts))
	_, err := b.js.PublishMsg(ctx, dead, jetstream.WithMsgID(DeadID(d)))
	b.storage.Note(dead.Subject, err, time.Now())
	var refused *jetstream.APIError
	if errors.As(err, &refused) || errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	return err
}

// DeadID is the id under which a message is kept as a dead letter.
func DeadID(d Delivery) string {
	return fmt.Sprintf("dead/%s/%d/%d", d.Subject, d.Sequence, d.Stored.UnixNano())
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

// DeadLetter is a message that no reader could process.
type DeadLetter struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"sequence"` // in the stream of such messages
	At       time.Time `json:"at"`       // when it was given up
	Stored   time.Time `json:"stored"`   // when it had come
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
	// Size is that of the message, in bytes, also where the message is left out.
	Size int `json:"-"`
}

// DeadLetters returns the stored dead letters, the oldest first.
func (b *Bus) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	all := []DeadLetter{}
	err := b.eachDeadLetter(ctx, func(d DeadLetter) { all = append(all, d) })
	return all, err
}

// LastDeadLetters returns the last dead letters, at most that many, the oldest first, and how
// many older ones there are. Each is handed to trim first, which may shorten it.
func (b *Bus) LastDeadLetters(ctx context.Context, most int, trim func(*DeadLetter)) (last []DeadLetter, older int, err error) {
	last = []DeadLetter{}
	err = b.eachDeadLetter(ctx, func(d DeadLetter) {
		trim(&d)
		if last = append(last, d); len(last) == 2*most {
			older += most
			last = append(last[:0], last[most:]...)
		}
	})
	if more := len(last) - most; more > 0 {
		older, last = older+more, last[more:]
	}
	return last, older, err
}

func (b *Bus) eachDeadLetter(ctx context.Context, each func(DeadLetter)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following, err := b.Replay(ctx, DeadStream, event.DeadFilter)
	if err != nil {
		return err
	}
	err = drain(ctx, following, func(d Delivery) {
		stored, _ := time.Parse(time.RFC3339Nano, d.Headers.Get(deadStoredHeader))
		each(DeadLetter{
			Subject: d.Headers.Get(deadSubjectHeader), Sequence: d.Sequence, At: d.Stored, Stored: stored,
			Reason: d.Headers.Get(deadReasonHeader), Message: string(d.Data), Size: len(d.Data),
		})
	})
	if err != nil {
		return fmt.Errorf("read stream %s: %w", DeadStream, err)
	}
	return nil
}
