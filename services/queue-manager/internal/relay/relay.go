// Package relay publishes the messages of the outbox in the order of their
// commits and removes them once NATS has them. It finds out when NATS has lost
// some of what it had, and publishes that anew.
//
// Commands and events have a lane each, so that one does not wait for the other. The
// server takes each message of a lane only right behind the one that the relay knows
// to be the stream's last. That holds their order, whatever fails in between; it
// tells of a stream that has lost its end before anything new is put there; and it
// keeps out a relay whose term is over and that wakes up late: what it knows to be
// last is so no more.
//
// A message may be published twice, when the process dies before it has removed
// it; its id is the same, and every reader takes the same message twice.
//
// It is not for deciding what to say (package book).
package relay

import (
	"context"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Outbox is where messages are kept until they are sent. Errors of Complete and
// Sent wrap store.ErrFenced when the epoch is over.
type Outbox interface {
	Unsent(ctx context.Context, prefix string, after int64, limit int) ([]store.Outgoing, error)
	Complete(ctx context.Context, epoch int64, messages []store.Outgoing) error
	Sent(ctx context.Context, epoch int64, seqs []int64, stream string, mark store.Mark) error
}

// Memory is what is remembered of the streams, and what cannot be sent.
type Memory interface {
	Marks(ctx context.Context) (map[string]store.Mark, error)
	SetMark(ctx context.Context, epoch int64, stream string, mark store.Mark) error
	SetAside(ctx context.Context, epoch int64, message store.Outgoing, reason string) error
}

// History is what has been told.
type History interface {
	ToldSince(ctx context.Context, after int64, age time.Duration, limit int) (told []store.Told, last int64, err error)
}

// Ledger is all of it.
type Ledger interface {
	Outbox
	Memory
	History
}

// Bus is NATS as a relay uses it. See bus.Bus for the meaning of each.
type Bus interface {
	PublishNext(subject, id string, encoded []byte, ttl time.Duration, end bus.End) (bus.Published, error)
	EnsureStreams(ctx context.Context) error
	State(ctx context.Context, stream string) (bus.StreamState, error)
	Subjects(ctx context.Context, stream, filter string) (map[string]bool, error)
	Reconnected() (<-chan struct{}, func())
}

// Missing says which commands NATS has; the others are to be said again.
type Missing struct {
	// All: what it has may be old.
	All bool
	// Present are the subjects that have a command.
	Present map[string]bool
}

// Undeliverable is a command that the server will never take.
type Undeliverable struct {
	Workload workload.ID
	Reason   string
}

// Options is what a relay works with.
type Options struct {
	Epoch  int64
	Ledger Ledger
	Bus    Bus
	Logger *zap.Logger
	// CheckEvery is how often the streams are compared with what they should have.
	CheckEvery time.Duration
	// Missing is told after each comparison, Undeliverable of each command that is
	// set aside. They are called from the relay's goroutines and may block.
	Missing       func(context.Context, Missing)
	Undeliverable func(context.Context, Undeliverable)
	// Pause waits, and Later does something later; nil for the machine's clock.
	Pause func(context.Context, time.Duration)
	Later func(time.Duration, func())
}

// Relay publishes during one term; Run does the work.
type Relay struct {
	Options
	commands, events *lane
}

// Prefixes of the subjects of the lanes.
const (
	commandPrefix = "muster.dispatch."
	eventPrefix   = "muster.events."
)

// New returns a relay for one term as leader.
func New(o Options) *Relay {
	if o.Pause == nil {
		o.Pause = pause
	}
	if o.Later == nil {
		o.Later = func(after time.Duration, do func()) { time.AfterFunc(after, do) }
	}
	r := &Relay{Options: o}
	r.commands = newLane(o, bus.DispatchStream, commandPrefix)
	r.events = newLane(o, bus.EventsStream, eventPrefix)
	return r
}

// Hand gives the relay messages that were just committed, in order. It does not
// wait: what a lane has no room for it reads from the outbox.
func (r *Relay) Hand(messages []store.Outgoing) {
	var commands, events []store.Outgoing
	for _, m := range messages {
		if r.commands.carries(m) {
			commands = append(commands, m)
		} else {
			events = append(events, m)
		}
	}
	r.commands.hand(commands)
	r.events.hand(events)
}

// Run publishes what earlier terms left in the outbox, then what is handed over,
// until ctx ends or the term is found to be over.
func (r *Relay) Run(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range r.lanes() {
		group.Go(func() error { return l.run(ctx) })
	}
	group.Go(func() error { return r.watch(ctx) })
	return group.Wait()
}

func (r *Relay) lanes() []*lane { return []*lane{r.commands, r.events} }

// begin has the lanes compare their streams with what these are known to have had.
func (r *Relay) begin(ctx context.Context) error {
	marks, err := r.Ledger.Marks(ctx)
	if err != nil {
		return err
	}
	for _, l := range r.lanes() {
		l.mark, l.saved = marks[l.stream], marks[l.stream]
		l.check() // at the start of each term
	}
	return nil
}

// watch has the lanes compare their streams now and then, and when NATS comes
// back, which may have lost its data.
func (r *Relay) watch(ctx context.Context) error {
	tick := time.NewTicker(r.CheckEvery)
	defer tick.Stop()
	reconnected, done := r.Bus.Reconnected()
	defer done()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-reconnected:
		}
		r.Check()
	}
}

// Check has the lanes compare their streams.
func (r *Relay) Check() {
	for _, l := range r.lanes() {
		l.check()
	}
}
