package relay

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

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
	// mark is what the stream is known to have had, saved what of it is stored. What
	// is published is to follow the mark's last message.
	mark, saved store.Mark
	// doubtful: some of what is sent next may be in the stream already.
	doubtful bool
}

func newLane(o Options, stream, prefix string) *lane {
	return &lane{
		Options: o, stream: stream, prefix: prefix, handed: make(chan []store.Outgoing, handLimit),
		checks: make(chan struct{}, 1),
	}
}

func (l *lane) carries(m store.Outgoing) bool { return strings.HasPrefix(m.Subject, l.prefix) }

// lastOnly reports whether the stream has one message of each subject, the last.
func (l *lane) lastOnly() bool { return l.stream == bus.DispatchStream }

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
	if err := l.begin(ctx); err != nil {
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

// begin finds out where the stream ends and sends what earlier terms left.
func (l *lane) begin(ctx context.Context) error {
	if err := l.orLater(ctx, l.resync(ctx, false)); err != nil {
		return err
	}
	return l.catchUp(ctx)
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
