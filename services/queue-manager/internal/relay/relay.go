package relay

import (
	"context"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Outbox is where messages are kept until they are sent. Errors of
// CheckEpochAndAddManifests and Sent wrap store.ErrFenced when the epoch is over, and
// store.ErrCommitMissing when the database was restored to an older state.
type Outbox interface {
	Unsent(ctx context.Context, prefixes []string, after int64, limit int) ([]store.Outgoing, error)
	CheckEpochAndAddManifests(ctx context.Context, epoch int64, messages []store.Outgoing) error
	Sent(ctx context.Context, epoch int64, seqs []int64, stream string, watermark store.Watermark) error
}

// WatermarkStore is what is remembered of the streams, and what cannot be sent.
type WatermarkStore interface {
	Watermarks(ctx context.Context) (map[string]store.Watermark, error)
	SetWatermark(ctx context.Context, epoch int64, stream string, watermark store.Watermark) error
	MoveToUndelivered(ctx context.Context, epoch int64, message store.Outgoing, reason string) error
}

// History is what has been published of workloads' lives.
type History interface {
	HistorySince(ctx context.Context, after int64, age time.Duration, limit int) (steps []store.HistoryEvent, last int64, err error)
}

// Store is all of it.
type Store interface {
	Outbox
	WatermarkStore
	History
	Past
}

// Bus is NATS as a relay uses it. See bus.Bus for the meaning of each.
type Bus interface {
	PublishNext(subject, id string, encoded []byte, ttl time.Duration, end bus.End) (bus.Published, error)
	Reconnected() (<-chan struct{}, func())
	Streams
	streamControl
}

// streamControl makes streams, moves their leaders and lists what they have.
type streamControl interface {
	EnsureStreams(ctx context.Context) error
	StepDown(ctx context.Context, stream string) (bool, error)
	Subjects(ctx context.Context, stream, filter string) (map[string]bool, error)
}

// CommandsFound is which commands NATS has; the others are to be published again.
type CommandsFound struct {
	// Present are the subjects that have a command.
	Present map[string]bool
	// Distrust: those commands may be old.
	Distrust bool
	// Committed is to be called once all that are to be published again are committed. Until then
	// the next term finds the same. It may be called by any goroutine; nil without Distrust.
	Committed func()
}

// Lacks reports whether the command of a subject is to be published again.
func (f CommandsFound) Lacks(subject string) bool { return f.Distrust || !f.Present[subject] }

// Undeliverable is a command that the server will never take.
type Undeliverable struct {
	Workload workload.ID
	Reason   string
}

// Options is what a relay works with.
type Options struct {
	Epoch  int64
	Store  Store
	Bus    Bus
	Logger *zap.Logger
	// CheckEvery is how often the streams are compared with what they should have.
	CheckEvery time.Duration
	// Compared is up to where FindAhead has compared the streams (Found.Ends); a stream
	// that is not in it is compared from its watermark on. A message that the ledger does not
	// know, and that is stored behind that before anything of this term, ends the term
	// with an error that wraps store.ErrCommitMissing.
	Compared map[string]store.Watermark
	// CommandsFound is called after each comparison, Undeliverable for each command that is
	// set aside. They are called from the relay's goroutines and may block.
	CommandsFound func(context.Context, CommandsFound)
	Undeliverable func(context.Context, Undeliverable)
	// Refused is called with what the database refuses of the relay's own notes; nil for
	// nothing.
	Refused func(what string)
	// Now is the time, Pause waits until ctx ends at most, whose error it returns then, and
	// Later does something later; nil for the machine's clock.
	Now   func() time.Time
	Pause func(context.Context, time.Duration) error
	Later func(time.Duration, func())
}

// Relay publishes during one term; Run does the work.
type Relay struct {
	Options
	commands, events *publisher
}

// Beginnings of the subjects of a publisher: commands to dispatchers go with what
// AdmissionChecks are asked.
func commandPrefixes() []string { return []string{"muster.dispatch.", "muster.check."} }

func eventPrefixes() []string { return []string{"muster.events."} }

// New returns a relay for one term as leader.
func New(o Options) *Relay {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pause == nil {
		o.Pause = pause.For
	}
	if o.Later == nil {
		o.Later = func(after time.Duration, do func()) { time.AfterFunc(after, do) }
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	r := &Relay{Options: o}
	r.commands = newPublisher(o, bus.DispatchStream, commandPrefixes())
	r.events = newPublisher(o, bus.EventsStream, eventPrefixes())
	return r
}

// Hand passes messages to the relay that were just committed, in order. It does not
// wait: what a publisher has no room for it reads from the outbox.
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
	for _, p := range r.publishers() {
		group.Go(func() error { return p.run(ctx) })
	}
	group.Go(func() error { return r.watch(ctx) })
	return group.Wait()
}

func (r *Relay) publishers() []*publisher { return []*publisher{r.commands, r.events} }

// begin has the publishers compare their streams with what these are known to have had.
func (r *Relay) begin(ctx context.Context) error {
	watermarks, err := r.Store.Watermarks(ctx)
	if err != nil {
		return err
	}
	for _, p := range r.publishers() {
		p.watermark, p.saved, p.compared = watermarks[p.stream], watermarks[p.stream], watermarks[p.stream]
		p.resend.noted = watermarks[resendNote(p.stream)].Last > 0
		if end, compared := p.Compared[p.stream]; compared {
			p.compared = end
		}
		p.check() // at the start of each term
	}
	return nil
}

// watch has the publishers compare their streams now and then, and when NATS comes
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
			for _, p := range r.publishers() {
				p.back.Store(true)
			}
		}
		r.Check()
	}
}

// Check has the publishers compare their streams.
func (r *Relay) Check() {
	for _, p := range r.publishers() {
		p.check()
	}
}
