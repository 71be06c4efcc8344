// Package publish tells the picture of a cluster over the bus: what changed, at
// once; and from time to time a list of all that is seen.
//
// It decides nothing about what is seen (package picture) and sees nothing
// itself (package watch).
package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/lease"
	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/capacity-watcher/internal/picture"
)

const (
	// batch is how much is sent before the server's answers are waited for.
	// What changes meanwhile is told once, with its latest value.
	batch = 1024
	// answerWithin bounds the wait for the server's answers to a batch.
	answerWithin = 5 * time.Second
	// retryAfter is the pause after a failure.
	retryAfter = 250 * time.Millisecond
	// goneKept is how long the stream keeps the news that something is gone.
	// Who reads later learns it from the list of what is there.
	goneKept = time.Hour
)

// Bus is NATS as a publisher uses it. See bus.Bus for the meaning of each.
type Bus interface {
	bus.ValueServer
	bus.StreamReader
	EnsureStreams(ctx context.Context) error
	Reconnected() (<-chan struct{}, func())
}

// Options says what is published and how.
type Options struct {
	Bus         Bus
	Cluster     string
	ResyncEvery time.Duration
	Logger      *zap.Logger
	Metrics     *Metrics
	Tracer      tracing.Tracer
	// Synced is called after each list of all that is seen was stored.
	Synced func()
	// Now is the clock, and Later does something later; nil for the machine's.
	Now   func() time.Time
	Later func(time.Duration, func())
	// Epoch of the lease under which is published.
	Epoch int64
	// Held returns an error when the lease is not held any more.
	Held func() error
	// Asked are the questions of queue-manager; nil for none.
	Asked <-chan *event.ReportWanted
	// LookEvery is how often is looked whether the stream still has what was
	// published; zero for lookEvery.
	LookEvery time.Duration
}

// Publisher publishes a picture. It implements watch.Target.
type Publisher struct {
	Options
	source string
	wake   chan struct{}
	due    bool // a list of all, after the first changes
	values *bus.Values

	mu       sync.Mutex
	picture  *picture.Picture
	complete bool // nothing is told of a picture that is not complete
	version  event.Version
	pace     pace
	answers  map[picture.Key]string // the questions that wait for an answer
	again    again
}

// New returns a publisher of an empty picture. What was published before is of
// earlier sessions than its epoch.
func New(o Options, before History) *Publisher {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Later == nil {
		o.Later = func(after time.Duration, do func()) { time.AfterFunc(after, do) }
	}
	if o.LookEvery == 0 {
		o.LookEvery = lookEvery
	}
	p := &Publisher{
		Options: o, answers: map[picture.Key]string{}, source: "capacity-watcher/" + o.Cluster, wake: make(chan struct{}, 1), due: true,
		picture: picture.New(o.Cluster), values: bus.NewValues(o.Bus, bus.CapacityStream, o.Epoch, sessionOf),
		version: event.Version{Session: o.Epoch}, pace: pace{},
	}
	for subject, sequence := range before.last {
		p.values.Known(subject, sequence)
	}
	// What was told of and is not there any more is told of as gone.
	p.picture.Retell(before.Told...)
	return p
}

// Apply changes the picture and wakes the publisher when there is news.
func (p *Publisher) Apply(change func(*picture.Picture)) {
	p.mu.Lock()
	change(p.picture)
	news := p.complete && p.picture.Changed() > 0
	p.mu.Unlock()
	if news {
		p.poke()
	}
}

// Complete says that the picture holds all there is; publishing begins.
func (p *Publisher) Complete() {
	p.mu.Lock()
	p.complete = true
	p.mu.Unlock()
	p.poke()
}

func (p *Publisher) poke() {
	select {
	case p.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Run publishes until ctx ends or somebody with a later epoch publishes.
func (p *Publisher) Run(ctx context.Context) error {
	reconnected, done := p.Bus.Reconnected()
	defer done()
	resync := time.NewTicker(p.ResyncEvery)
	defer resync.Stop()
	look := time.NewTicker(p.LookEvery)
	defer look.Stop()
	repeat := time.NewTicker(bus.RoundStep)
	defer repeat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.wake:
		case <-resync.C:
			p.List()
		case <-reconnected:
			p.Again()
		case <-look.C:
			p.Look(ctx)
		case <-repeat.C:
			p.Repeat()
		case q := <-p.Asked:
			p.Answer(ctx, q)
		}
		err := p.Tell(ctx)
		if errors.Is(err, bus.ErrReplaced) || errors.Is(err, lease.ErrLost) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			p.Metrics.failures.Inc()
			p.Logger.Warn("cannot publish capacity; trying again", zap.Error(err), zap.Duration("after", retryAfter))
			p.Later(retryAfter, p.poke)
		}
	}
}

// List has the next Tell say all that is seen.
func (p *Publisher) List() { p.due = true }

// Again has everything told anew: the server may have lost everything.
func (p *Publisher) Again() {
	p.Apply((*picture.Picture).RetellAll)
	p.List()
}

// Tell publishes what has changed and, when that is due, the list of all. After an
// error it is to be called again. It must not overlap itself, List or Again.
func (p *Publisher) Tell(ctx context.Context) error {
	if !p.isComplete() {
		return nil
	}
	err := p.publish(ctx, &p.due)
	if err != nil && ctx.Err() == nil {
		p.restore(ctx, err)
	}
	return err
}

func (p *Publisher) isComplete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.complete
}

// publish tells all changes, and the list of all when it is due. The list comes
// after everything that had changed when it became due, so that no reader
// misses what it names.
func (p *Publisher) publish(ctx context.Context, due *bool) error {
	p.mu.Lock()
	before := p.picture.Changed()
	p.mu.Unlock()
	for {
		told, held, err := p.publishBatch(ctx)
		if err != nil {
			return err
		}
		before -= told + held // what is held back has been told of lately
		if *due && before <= 0 {
			if err := p.publishList(ctx); err != nil {
				return err
			}
			*due = false
			p.Synced()
		}
		if told == 0 {
			return nil
		}
	}
}

// message is one thing to say, encoded.
type message struct {
	key     picture.Key
	subject string
	id      string
	data    []byte
	ttl     time.Duration
	answers string
}

// publishBatch tells some changes and returns how many, and how many it holds back
// for a moment. What the server did not take remains to be told.
func (p *Publisher) publishBatch(ctx context.Context) (told, held int, err error) {
	messages, held, err := p.takeBatch()
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	sent := make([]bus.Value, 0, len(messages))
	failed := p.Held()
	for _, m := range messages {
		if failed != nil {
			break
		}
		published, err := p.values.Publish(m.subject, m.id, m.data, m.ttl)
		if err != nil {
			failed = err
			break
		}
		sent = append(sent, published)
	}
	for i, m := range messages {
		if i < len(sent) {
			if err := sent[i].Wait(ctx); err == nil {
				p.Metrics.published.Inc()
				continue
			} else {
				failed = err
			}
		}
		p.Apply(func(picture *picture.Picture) {
			picture.Retell(m.key)
			if _, asked := p.answers[m.key]; !asked && m.answers != "" {
				p.answers[m.key] = m.answers
			}
		})
	}
	return len(messages), held, failed
}

func (p *Publisher) takeBatch() (messages []message, held int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Metrics.sizes(p.picture.Sizes())
	keys := p.picture.Take(batch)
	messages = make([]message, 0, len(keys))
	now := p.Now()
	for _, key := range keys {
		pods := p.picture.GangSize(key.Gang)
		if wait := p.pace.early(key, pods, now); wait > 0 {
			held++
			p.picture.Retell(key)
			p.Later(wait, p.poke)
			continue
		}
		p.pace.told(key, pods, now)
		payload, gone := p.picture.Tell(key, p.next())
		answers := p.answers[key]
		delete(p.answers, key)
		m, err := p.encode(answering(payload, answers))
		if err != nil {
			p.picture.Retell(keys...)
			return nil, 0, err
		}
		m.key, m.subject, m.answers = key, p.subject(key), answers
		if gone {
			m.ttl = goneKept
		}
		messages = append(messages, m)
	}
	return messages, held, nil
}

func (p *Publisher) publishList(ctx context.Context) error {
	p.mu.Lock()
	nodes, gangs := p.picture.Seen()
	m, err := p.encode(&event.CapacitySynced{Version: p.next(), Cluster: p.Cluster, Nodes: nodes, Gangs: gangs})
	p.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := p.Held(); err != nil {
		return err
	}
	published, err := p.values.Publish(bus.SyncedSubject(p.Cluster), m.id, m.data, 0)
	if err != nil {
		return err
	}
	return published.Wait(ctx)
}

// next returns the version of the next message; the lock is held.
func (p *Publisher) next() event.Version {
	p.version.Seq++
	return p.version
}

// encode puts the payload into an envelope with an id of the version; the lock
// is held.
func (p *Publisher) encode(payload event.Payload) (message, error) {
	id := fmt.Sprintf("%s/%d/%d", p.source, p.version.Session, p.version.Seq)
	traceparent := ""
	if gang, ok := payload.(*event.GangObserved); ok {
		span := p.Tracer.Continue(gang.Workload, "", "pods seen", time.Now(), "muster.cluster", p.Cluster)
		traceparent = span.Traceparent()
		span.End(nil)
	}
	data, err := event.Marshal(id, p.source, p.Now(), traceparent, payload)
	return message{id: id, data: data}, err
}

func (p *Publisher) subject(key picture.Key) string {
	if key.Gang != workload.ID("") {
		return bus.GangSubject(p.Cluster, key.Gang)
	}
	return bus.NodeSubject(p.Cluster, key.Node)
}

// restore creates the streams anew when the server lost them.
func (p *Publisher) restore(ctx context.Context, cause error) {
	if !errors.Is(cause, bus.ErrNoStream) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := p.Bus.EnsureStreams(ctx); err != nil {
		p.Logger.Warn("cannot restore streams", zap.Error(err))
		return
	}
	p.Apply((*picture.Picture).RetellAll) // what they held is lost
}
