package relay

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const (
	// batchLimit is how many messages are taken in hand at once.
	batchLimit = 1000
	// handLimit is how many commits' messages wait in a lane; what comes beyond
	// them is read from the outbox later.
	handLimit   = 64
	retryAfter  = 500 * time.Millisecond
	ackTimeout  = 10 * time.Second
	markEvery   = time.Second // how often a lane remembers what its stream has
	recheckSoon = time.Second // after a comparison that failed
)

// lane publishes the messages of one stream.
type lane struct {
	Options
	stream, prefix string
	handed         chan []store.Outgoing
	behind         atomic.Bool   // something was not handed over
	checks         chan struct{} // a comparison is due

	last int64 // in the outbox, of what this lane has sent
	// mark is what the stream is known to have had, saved what of it is stored.
	mark, saved store.Mark
	// floor is what the stream was known to have before the messages that are being
	// sent.
	floor uint64
	// ends are the last sequences of commands' subjects; one that is not there is
	// taken to have none, and the server says when that is wrong.
	ends map[string]uint64
}

func newLane(o Options, stream, prefix string) *lane {
	return &lane{
		Options: o, stream: stream, prefix: prefix, handed: make(chan []store.Outgoing, handLimit),
		checks: make(chan struct{}, 1), ends: map[string]uint64{},
	}
}

func (l *lane) carries(m store.Outgoing) bool { return strings.HasPrefix(m.Subject, l.prefix) }

// ordered reports whether the server shall compare what is last on a subject.
func (l *lane) ordered() bool { return l.stream == bus.DispatchStream }

func (l *lane) hand(messages []store.Outgoing) {
	if len(messages) == 0 {
		return
	}
	select {
	case l.handed <- messages:
	default:
		l.behind.Store(true)
	}
}

func (l *lane) check() {
	select {
	case l.checks <- struct{}{}:
	default: // one is due already
	}
}

func (l *lane) run(ctx context.Context) error {
	tick := time.NewTicker(markEvery)
	defer tick.Stop()
	if err := l.catchUp(ctx); err != nil {
		return err
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.checks:
			err = l.compare(ctx)
		case <-tick.C:
			err = l.saveMark(ctx)
		case messages := <-l.handed:
			err = l.send(ctx, l.unsent(l.more(messages)))
		}
		if err == nil {
			err = l.catchUpIfBehind(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (l *lane) catchUpIfBehind(ctx context.Context) error {
	if !l.behind.Load() {
		return nil
	}
	return l.catchUp(ctx)
}

// catchUp sends what is in the outbox behind what has been sent.
func (l *lane) catchUp(ctx context.Context) error {
	for {
		l.behind.Store(false) // what is committed from here on is handed over, or we come again
		left, err := l.Ledger.Unsent(ctx, l.prefix, l.last, batchLimit)
		if err != nil {
			return err
		}
		if err := l.send(ctx, left); err != nil {
			return err
		}
		if len(left) < batchLimit && !l.behind.Load() {
			return nil
		}
	}
}

// more adds what else has been committed meanwhile. When something is missing
// in between it stops: that comes from the outbox.
func (l *lane) more(messages []store.Outgoing) []store.Outgoing {
	for len(messages) < batchLimit {
		select {
		case next := <-l.handed:
			messages = append(messages, next...)
		default:
			return messages
		}
	}
	return messages
}

// unsent leaves out what was sent from the outbox already, and, if something was
// not handed over, everything: it is all in the outbox, in order.
func (l *lane) unsent(messages []store.Outgoing) []store.Outgoing {
	if l.behind.Load() {
		return nil
	}
	for len(messages) > 0 && messages[0].Seq <= l.last {
		messages = messages[1:]
	}
	return messages
}

// send publishes until NATS has all of them, in order, however long it takes. It
// returns an error when the term is over or Postgres does not answer.
func (l *lane) send(ctx context.Context, messages []store.Outgoing) error {
	l.floor = l.mark.Last
	for len(messages) > 0 {
		if err := l.Ledger.Complete(ctx, l.Epoch, messages); err != nil {
			return err
		}
		done, err := l.publish(ctx, messages)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if done > 0 {
			seqs := make([]int64, done)
			for i, m := range messages[:done] {
				seqs[i] = m.Seq
			}
			if err := l.Ledger.Sent(ctx, l.Epoch, seqs, l.stream, l.mark); err != nil {
				return err
			}
			l.saved, l.last = l.mark, messages[done-1].Seq
			messages = messages[done:]
		}
		if err != nil {
			l.Logger.Warn("cannot publish from the outbox; trying again", zap.Error(err), zap.String("stream", l.stream),
				zap.Int("waiting", len(messages)), zap.Duration("after", retryAfter))
			if errors.Is(err, bus.ErrNoStream) {
				l.check() // it may be lost
			}
			if err := l.Bus.EnsureStreams(ctx); err != nil {
				l.Logger.Warn("cannot restore streams", zap.Error(err))
			}
			l.Pause(ctx, retryAfter)
		}
	}
	return nil
}

// publish sends all and returns how many of them, from the first, are done with.
func (l *lane) publish(ctx context.Context, messages []store.Outgoing) (done int, err error) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	for done < len(messages) {
		n := wave(messages[done:])
		settled, err := l.publishWave(ctx, messages[done:done+n])
		done += settled
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// wave returns how many messages, from the first, have different subjects.
func wave(messages []store.Outgoing) int {
	seen := make(map[string]bool, len(messages))
	for i, m := range messages {
		if seen[m.Subject] {
			return i
		}
		seen[m.Subject] = true
	}
	return len(messages)
}

// publishWave sends messages of different subjects at once.
func (l *lane) publishWave(ctx context.Context, messages []store.Outgoing) (done int, err error) {
	published := make([]*bus.Published, 0, len(messages))
	for _, m := range messages {
		p, failed := l.start(ctx, m)
		if failed != nil {
			err = failed
			break
		}
		published = append(published, p)
	}
	for i, p := range published {
		if p == nil { // nothing to wait for
			continue
		}
		sequence, failed := p.Stored(ctx)
		newer := false
		if errors.Is(failed, bus.ErrOvertaken) {
			sequence, newer, failed = l.overtake(ctx, messages[i])
		}
		if failed != nil {
			return i, failed
		}
		l.stored(messages[i], sequence)
		if newer {
			// The next one of this subject is not to follow it without a comparison.
			delete(l.ends, messages[i].Subject)
		}
	}
	return len(published), err
}

// start sends one message; nil when it is not to be sent at all.
func (l *lane) start(ctx context.Context, m store.Outgoing) (*bus.Published, error) {
	if m.ManifestOf != "" {
		return nil, nil // its workload has ended, and a later command says so
	}
	var p bus.Published
	var err error
	if l.ordered() {
		p, err = l.Bus.PublishAfter(m.Subject, m.EventID, m.Message, m.TTL, l.ends[m.Subject])
	} else {
		p, err = l.Bus.PublishEncoded(m.Subject, m.EventID, m.Message, m.TTL)
	}
	if errors.Is(err, bus.ErrTooLarge) {
		return nil, l.setAside(ctx, m, err)
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// stored notes where a message is. One that was to be behind all others and is not
// tells that the stream has lost its end, however long it is again when it is
// compared. It may have been stored by an earlier try of which nobody heard. The
// mark then is of a stream that never was, so that also the next term finds it lost.
func (l *lane) stored(m store.Outgoing, sequence uint64) {
	if sequence <= l.floor {
		l.mark.Created = neverMade()
		l.check()
	}
	l.mark.Last = max(l.mark.Last, sequence)
	switch {
	case !l.ordered():
	case m.TTL > 0: // the last one of its subject
		delete(l.ends, m.Subject)
	default:
		l.ends[m.Subject] = sequence
	}
}

// neverMade is when no stream was made.
func neverMade() time.Time { return time.Unix(0, 0).UTC() }

// saveMark remembers what the stream has had, if that is news.
func (l *lane) saveMark(ctx context.Context) error {
	if l.mark.Created.IsZero() || l.mark.Last == l.saved.Last && l.mark.Created.Equal(l.saved.Created) {
		return nil
	}
	if err := l.Ledger.SetMark(ctx, l.Epoch, l.stream, l.mark); err != nil {
		return err
	}
	l.saved = l.mark
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
