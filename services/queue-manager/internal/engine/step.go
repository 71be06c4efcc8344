package engine

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Archive is asked for the workloads that a state has forgotten.
type Archive interface {
	// Known returns what is stored of workloads, live or finished.
	Known(ctx context.Context, ids []workload.ID) (map[workload.ID]state.Known, error)
}

// Step is the step of a term: it applies a batch of messages to the state and lets the
// state decide. It starts no goroutine, reads no clock and writes nothing, so that a
// simulation can drive it as the leader does. A Writer commits its decisions.
type Step struct {
	State   *state.State
	Archive Archive
	Logger  *zap.Logger
	// Unreadable counts messages that are given up.
	Unreadable prometheus.Counter
	Tracer     tracing.Tracer
	// Unrecorded: decisions are not recorded, because that cannot be stored.
	Unrecorded bool
	// NoPastUsage: the past usage of queues is not stored, because that cannot be stored.
	NoPastUsage bool
	// NoLearned: what was learned of the cost of evictions is not stored, because that cannot
	// be stored.
	NoLearned bool
	// DeadLetter gives a message up and keeps it with the reason.
	DeadLetter func(ctx context.Context, d bus.Delivery, reason string)
	// Publish publishes an event beside the outbox, of what changes nothing in the ledger.
	Publish func(ctx context.Context, subject, id string, payload event.Payload) error

	decisions decisionlog.Recorder // of what is done to the state
	poison    poison
	ending    endings
	early     earlyRequests
	readTo    readTo
}

// Decision is a batch that has been decided.
type Decision struct {
	Changes     state.Changes // to count only: the state goes on meanwhile
	Batch       []bus.Delivery
	transaction store.Transaction // nil until a Writer has prepared it
	record      store.Record
	settle      []func()
	traced      spans
}

// Apply applies a batch; decide is whether the state has seen all there is, and may
// decide. It returns nil when there is nothing to write. After an error the messages have
// been given back, but for those that are to blame for it.
func (s *Step) Apply(ctx context.Context, batch []bus.Delivery, decide bool, now time.Time) (*Decision, error) {
	settle, err := s.applyBatch(ctx, batch, now)
	if err != nil {
		redeliver(without(batch, err))
		return nil, err
	}
	if decide {
		s.Do(decisionlog.Input{Kind: decisionlog.Decide, At: now})
	}
	changes := s.State.Flush()
	if s.NoPastUsage {
		changes.PastUsage = nil
	}
	if s.NoLearned {
		changes.Learned = nil
	}
	record := s.record(changes, now)
	if changes.Empty() && record.Inputs == nil && len(settle) == 0 {
		return nil, nil
	}
	return &Decision{Changes: changes, Batch: batch, record: record, settle: settle, traced: s.trace(changes, now)}, nil
}

// known returns what is known of workloads that the state may have forgotten.
func (s *Step) known(ctx context.Context, ids []workload.ID) (map[workload.ID]state.Known, error) {
	known, err := s.Archive.Known(ctx, ids)
	if err != nil {
		return nil, err
	}
	s.ending.addTo(known, ids)
	return known, nil
}

// endings are the workloads that end in a commit that is not written yet: they are no
// longer in the state, and Postgres does not have them as ended. The step reads them
// while the writer removes those that it has written.
type endings struct {
	mu  sync.Mutex
	all map[workload.ID]state.Known
}

// add remembers the workloads that end with the changes.
func (e *endings) add(changes state.Changes) {
	e.mu.Lock()
	defer e.mu.Unlock()
	eachEnd(changes, func(r workload.Record) {
		if e.all == nil {
			e.all = map[workload.ID]state.Known{}
		}
		e.all[r.ID] = state.Known{Digest: r.Digest, Phase: r.Phase, Submitter: r.Submitter}
	})
}

// remove forgets the workloads that end with the changes.
func (e *endings) remove(changes state.Changes) {
	e.mu.Lock()
	defer e.mu.Unlock()
	eachEnd(changes, func(r workload.Record) { delete(e.all, r.ID) })
}

// addTo adds those of the ids that are ending to what is known.
func (e *endings) addTo(known map[workload.ID]state.Known, ids []workload.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		if k, ok := e.all[id]; ok {
			known[id] = k
		}
	}
}

// eachEnd calls do with the workloads that the state forgets with the changes.
func eachEnd(changes state.Changes, do func(workload.Record)) {
	gone := func(r workload.Record) bool { return r.Phase.Final() && !r.Holding }
	for _, a := range changes.Added {
		if gone(a.Record) {
			do(a.Record)
		}
	}
	for _, r := range changes.Updated {
		if gone(r) {
			do(r)
		}
	}
}

// redeliver has unsettled messages delivered again to the next term.
func redeliver(batch []bus.Delivery) {
	for _, d := range batch {
		d.Retry(0)
	}
}
