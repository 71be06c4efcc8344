// Package publish publishes the observed state of a cluster on the bus: changes at once, and
// periodically a list of everything.
//
//	watch --Apply--> Cache --changed keys--> PublishChanges --> MUSTER_CAPACITY
//	                   ^                          |
//	                   |                          +--> list of everything, when it is due
//	                   +-- marked again: what the stream has lost (CompareStream), what
//	                       queue-manager asks for (Answer), all in turn (RepublishNext)
//
// It is not for keeping that state (package observed) nor for watching (package watch).
package publish

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

const (
	// batch is the number of messages between waits for the server's answers. Several
	// changes of a thing meanwhile become one message with its latest value.
	batch = 1024
	// answerWithin bounds the wait for the server's answers to a batch.
	answerWithin = 5 * time.Second
	// retryAfter is the pause after a failure.
	retryAfter = 250 * time.Millisecond
	// goneKept is how long the stream keeps a removal. Later readers learn it from the
	// list.
	goneKept = time.Hour
)

// Publisher publishes a cluster's observed state. It implements watch.Target.
type Publisher struct {
	Options
	source   string
	notified chan struct{}
	due      bool // whether a list of everything is due
	// namespaces: a list that names all namespaces has been due.
	namespaces bool
	// kinds are those that the list was due for last.
	kinds  []workload.ObjectKind
	values *bus.Values

	mu            sync.Mutex
	cache         *observed.Cache
	complete      bool // publishing starts when the cache is complete
	version       event.Version
	pace          pace
	answers       map[observed.Key]string // pending requests of queue-manager
	republication republication
}

// New returns a publisher with an empty cache. The sessions in before must be earlier
// than its epoch.
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
		Options: o, answers: map[observed.Key]string{}, source: "capacity-watcher/" + o.Cluster, notified: make(chan struct{}, 1), due: true,
		cache: observed.New(o.Cluster), values: bus.NewValues(o.Bus, bus.CapacityStream, o.Epoch, sessionOf),
		version: event.Version{Session: o.Epoch}, pace: pace{},
	}
	for subject, sequence := range before.last {
		p.values.Known(subject, sequence)
	}
	// What has vanished since then is published as removed.
	p.cache.Recall(before.Present...)
	p.kinds = before.Kinds
	p.cache.SetKinds(before.Kinds)
	return p
}

// Apply changes the observed state and wakes the publisher if something changed.
func (p *Publisher) Apply(change func(*observed.Cache)) {
	p.mu.Lock()
	change(p.cache)
	changed := p.complete && (p.cache.Changed() > 0 || !p.cache.SameKinds(p.kinds))
	p.mu.Unlock()
	if changed {
		p.notify()
	}
}

// Complete marks the observed state as complete; publishing begins.
func (p *Publisher) Complete() {
	p.mu.Lock()
	p.complete = true
	p.mu.Unlock()
	p.notify()
}

func (p *Publisher) notify() {
	select {
	case p.notified <- struct{}{}:
	default: // already awake
	}
}

// Run publishes until ctx ends or a publisher with a later epoch takes over.
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
		case <-p.notified:
		case <-resync.C:
			p.ScheduleList()
		case <-reconnected:
			p.RepublishAll()
		case <-look.C:
			p.CompareStream(ctx)
		case <-repeat.C:
			p.RepublishNext()
		case q := <-p.Asked:
			p.Answer(ctx, q)
		}
		err := p.PublishChanges(ctx)
		switch {
		case errors.Is(err, bus.ErrReplaced):
			return err
		case errors.Is(err, lease.ErrLost): // ctx ends if another process has it
			p.Later(retryAfter, p.notify)
		case err != nil && ctx.Err() == nil:
			p.Metrics.failures.Inc()
			p.Logger.Warn("cannot publish observations; retrying", zap.Error(err), zap.Duration("after", retryAfter))
			p.Later(retryAfter, p.notify)
		}
	}
}

// ScheduleList makes the next PublishChanges publish the list of everything.
func (p *Publisher) ScheduleList() { p.due = true }

// RepublishAll marks everything for publication, because the server may have lost it.
func (p *Publisher) RepublishAll() {
	p.Apply((*observed.Cache).MarkAllChanged)
	p.ScheduleList()
}

// PublishChanges publishes what has changed and, when it is due, the list of everything.
// After an error the caller must call it again. It must not overlap itself, ScheduleList
// or RepublishAll.
func (p *Publisher) PublishChanges(ctx context.Context) error {
	if !p.isComplete() {
		return nil
	}
	p.dueForList()
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

// dueForList has the list of everything published when it would have another set of kinds, or
// name all namespaces for the first time.
func (p *Publisher) dueForList() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if listed := p.cache.NamespacesListed(); listed != p.namespaces {
		p.namespaces, p.due = listed, true
	}
	if !p.cache.SameKinds(p.kinds) {
		p.kinds, p.due = p.cache.Kinds(), true
	}
}

// publish publishes all changes, and the list if it is due. The list follows everything
// that had changed when it became due, so that readers know all that it names.
func (p *Publisher) publish(ctx context.Context, due *bool) error {
	p.mu.Lock()
	before := p.cache.Changed()
	p.mu.Unlock()
	for {
		sent, delayed, err := p.publishBatch(ctx)
		if err != nil {
			return err
		}
		before -= sent + delayed // a delayed gang has a recent message
		if *due && before <= 0 {
			if err := p.publishList(ctx); err != nil {
				return err
			}
			*due = false
			p.Synced()
		}
		if sent == 0 {
			return nil
		}
	}
}

// restore creates the streams again if the server lost them.
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
	p.Apply((*observed.Cache).MarkAllChanged) // the old streams' content is lost
}
