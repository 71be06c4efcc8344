package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrReplaced is wrapped when a later epoch of the same kind of publisher has
// published on a subject.
var ErrReplaced = errors.New("a later epoch has published there")

// Values publishes last values of subjects for a publisher that another one may
// replace. The server takes a value only if the subject's last one is what this
// publisher knows of; when it is not, and is of a later epoch, that one stays.
// Of one subject, one value may be on its way at a time. Its methods may be called
// concurrently.
type Values struct {
	server ValueServer
	stream string
	epoch  int64
	// epochOf reads the epoch of a value.
	epochOf func(Delivery) (int64, error)

	mu      sync.Mutex
	ends    map[string]uint64 // the sequence of a subject's last value, as far as it is known
	created time.Time         // of the stream, when it was compared last; see Lost
}

// ValueServer is NATS as Values uses it; a Bus is one. See Bus for the meaning of
// each.
type ValueServer interface {
	PublishAfter(subject, id string, encoded []byte, ttl time.Duration, last uint64) (Published, error)
	LastMessage(ctx context.Context, stream, subject string) (*Delivery, error)
}

// NewValues returns a publisher of the given epoch.
func NewValues(server ValueServer, stream string, epoch int64, epochOf func(Delivery) (int64, error)) *Values {
	return &Values{server: server, stream: stream, epoch: epoch, epochOf: epochOf, ends: map[string]uint64{}}
}

// Known notes what is last on a subject.
func (v *Values) Known(subject string, sequence uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ends[subject] = sequence
}

// Value is a value on its way.
type Value struct {
	values      *Values
	subject, id string
	encoded     []byte
	ttl         time.Duration
	published   Published
}

// Publish sends a value. With a ttl it vanishes after that.
func (v *Values) Publish(subject, id string, encoded []byte, ttl time.Duration) (Value, error) {
	v.mu.Lock()
	last := v.ends[subject]
	v.mu.Unlock()
	published, err := v.server.PublishAfter(subject, id, encoded, ttl, last)
	return Value{v, subject, id, encoded, ttl, published}, err
}

// valueTries bounds how often a value is sent behind what is last.
const valueTries = 5

// Wait returns nil when the server has stored the value. The error may wrap
// ErrReplaced, or what Published.Stored returns.
func (p Value) Wait(ctx context.Context) error {
	for range valueTries {
		sequence, err := p.published.Stored(ctx)
		if err == nil {
			p.stored(sequence)
			return nil
		}
		if !errors.Is(err, ErrOvertaken) {
			return err
		}
		last, err := p.values.server.LastMessage(ctx, p.values.stream, p.subject)
		if err != nil {
			return err
		}
		end := uint64(0)
		if last != nil {
			if end = last.Sequence; last.MessageID() == p.id {
				p.stored(end) // ours, whose answer was lost
				return nil
			}
			if theirs, err := p.values.epochOf(*last); err == nil && theirs > p.values.epoch {
				return fmt.Errorf("publish on %s in epoch %d: %w: %d", p.subject, p.values.epoch, ErrReplaced, theirs)
			}
		}
		if p.published, err = p.values.server.PublishAfter(p.subject, p.id, p.encoded, p.ttl, end); err != nil {
			return err
		}
	}
	return fmt.Errorf("publish on %s: %w %d times", p.subject, ErrOvertaken, valueTries)
}

func (p Value) stored(sequence uint64) {
	p.values.mu.Lock()
	defer p.values.mu.Unlock()
	if p.ttl > 0 { // the last of its subject, for long
		delete(p.values.ends, p.subject)
	} else {
		p.values.ends[p.subject] = sequence
	}
}
