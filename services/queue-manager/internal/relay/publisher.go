package relay

import (
	"context"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const (
	// batchLimit is how many messages are taken in hand at once.
	batchLimit = 1000
	// handLimit is how many commits' messages wait in a publisher; what comes beyond
	// them is read from the outbox later.
	handLimit   = 64
	retryAfter  = 500 * time.Millisecond
	ackTimeout  = 10 * time.Second
	saveEvery   = time.Second // how often a publisher remembers what its stream has
	recheckSoon = time.Second // after a comparison that failed
	lookTicks   = 3           // of saveEvery, from one look at the stream's state to the next
)

// publisher publishes the messages of one stream.
type publisher struct {
	Options
	stream   string
	prefixes []string
	handed   chan []store.Outgoing
	behind   atomic.Bool   // something was not handed over
	checks   chan struct{} // a comparison is due

	last    int64 // in the outbox, of what this publisher has published and removed
	backlog *backlog
	// watermark is what the stream is known to have had, saved what of it is stored. What
	// is published is to follow the watermark's last message.
	watermark, saved store.Watermark
	// Up to compared the stream is known to have nothing that the ledger does not know. What
	// follows is looked at until the stream has something of this term (own).
	compared store.Watermark
	own      bool
	ticks    uint // since the publisher runs
	// looked is what the stream had at the last look, and first is where an event was stored
	// since the last comparison. gone: they are not there any more.
	looked bus.StreamState
	first  uint64
	gone   bool
	stall  stall
	back   atomic.Bool // NATS is there again after a while
	// again is the suffix of the ids of what is published once more; empty for none.
	again string
	// uncertain: the stream may have some of the next messages already.
	uncertain bool
	// stale are subjects whose last command in the stream may be an older one.
	stale map[string]bool
	// unmarked: the watermark cannot be stored.
	unmarked bool
	// kept: some of what was published is still in the outbox, because no watermark that
	// covers it is stored.
	kept   bool
	resend resend
	// begun are the subjects of the outbox's messages so far, while the publisher begins.
	begun map[string]bool
}

func newPublisher(o Options, stream string, prefixes []string) *publisher {
	return &publisher{
		Options: o, stream: stream, prefixes: prefixes, handed: make(chan []store.Outgoing, handLimit),
		checks: make(chan struct{}, 1), backlog: newBacklog(),
	}
}

func (p *publisher) carries(m store.Outgoing) bool {
	return slices.ContainsFunc(p.prefixes, func(prefix string) bool { return strings.HasPrefix(m.Subject, prefix) })
}

// lastOnly reports whether the stream has one message of each subject, the last.
func (p *publisher) lastOnly() bool { return p.stream == bus.DispatchStream }

func (p *publisher) hand(messages []store.Outgoing) {
	if len(messages) == 0 {
		return
	}
	p.backlog.commit(messages)
	select {
	case p.handed <- messages:
	default:
		p.behind.Store(true)
	}
}

// advance notes the last message that this publisher need not look at any more.
func (p *publisher) advance(last int64) {
	p.last = last
	p.backlog.publish(last)
}

func (p *publisher) check() {
	select {
	case p.checks <- struct{}{}:
	default: // one is due already
	}
}

func (p *publisher) run(ctx context.Context) error {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	if err := p.begin(ctx); err != nil {
		return err
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.checks:
			err = p.compare(ctx)
		case <-tick.C:
			err = p.tick(ctx)
		case messages := <-p.handed:
			err = p.send(ctx, p.unsent(p.more(messages)))
		}
		if err == nil {
			err = p.catchUpIfBehind(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// begin finds out where the stream ends and sends what earlier terms left.
func (p *publisher) begin(ctx context.Context) error {
	if err := p.orLater(ctx, p.findEnd(ctx, false)); err != nil {
		return err
	}
	if p.lastOnly() {
		p.begun = map[string]bool{}
		defer func() { p.begun = nil }()
	}
	return p.catchUp(ctx)
}

func (p *publisher) catchUpIfBehind(ctx context.Context) error {
	if !p.behind.Load() {
		return nil
	}
	return p.catchUp(ctx)
}

// catchUp sends what is in the outbox behind what has been sent.
func (p *publisher) catchUp(ctx context.Context) error {
	for {
		p.behind.Store(false) // what is committed from here on is handed over, or we come again
		left, err := p.Store.Unsent(ctx, p.prefixes, p.last, batchLimit)
		if err != nil {
			return err
		}
		p.noteRepeated(left)
		if err := p.send(ctx, left); err != nil {
			return err
		}
		if len(left) < batchLimit && !p.behind.Load() {
			return nil
		}
	}
}

// more adds the messages that have been handed over meanwhile, up to a batch.
func (p *publisher) more(messages []store.Outgoing) []store.Outgoing {
	for len(messages) < batchLimit {
		select {
		case next := <-p.handed:
			messages = append(messages, next...)
		default:
			return messages
		}
	}
	return messages
}

// unsent leaves out what was sent from the outbox already. When hand has dropped messages,
// it leaves out everything: catchUp sends all of it from the outbox, in order.
func (p *publisher) unsent(messages []store.Outgoing) []store.Outgoing {
	if p.behind.Load() {
		return nil
	}
	for len(messages) > 0 && messages[0].Seq <= p.last {
		messages = messages[1:]
	}
	return messages
}

// tick does what is due each saveEvery. Until something of the term is stored, messages
// that arrive late are looked for after 1, 2, 4, 8 ticks and so on: a message is found
// after at most twice the time that it took to arrive, and an idle publisher asks the server
// less and less often.
func (p *publisher) tick(ctx context.Context) error {
	p.ticks++
	if err := p.endResend(ctx); err != nil {
		return err
	}
	if !p.own && bits.OnesCount(p.ticks) == 1 {
		return p.orLater(ctx, p.findEnd(ctx, false))
	}
	if err := p.saveWatermark(ctx); err != nil {
		return err
	}
	if err := p.removeKept(ctx); err != nil || p.ticks%lookTicks != 0 {
		return err
	}
	return p.look(ctx)
}

// neverMade is when no stream was made.
func neverMade() time.Time { return time.Unix(0, 0).UTC() }

// emptyAgain is when no stream was made either: the watermark of one that was emptied and is
// not filled again yet.
func emptyAgain() time.Time { return time.Unix(1, 0).UTC() }

// saveWatermark remembers what the stream has had, if that is news.
func (p *publisher) saveWatermark(ctx context.Context) error {
	if p.watermark.Created.IsZero() || p.watermarkStored() {
		return nil
	}
	err := p.Store.SetWatermark(ctx, p.Epoch, p.stream, p.watermark)
	if store.Suspect(err) { // tried again with each message, and logged once
		if !p.unmarked {
			p.refuse("mark", "cannot store the watermark of a stream; losses in it may stay unnoticed", err)
		}
		p.unmarked = true
		return nil
	}
	if err == nil {
		p.saved, p.unmarked = p.watermark, false
	}
	return err
}

// watermarkStored reports whether a watermark is stored that covers all that was published.
func (p *publisher) watermarkStored() bool {
	return !p.watermark.Created.IsZero() && p.watermark.Last == p.saved.Last && p.watermark.Created.Equal(p.saved.Created)
}
