package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// ledger is a Store that fails with the given errors.
type ledger struct{ prepare, write error }

func (l ledger) Prepare(state.Changes, store.Record) (store.Transaction, error) {
	return func(context.Context) ([]store.Outgoing, error) { return make([]store.Outgoing, 1), l.write }, l.prepare
}

func (ledger) Probe(context.Context, state.Changes, store.Record, string) ([]store.Refusal, error) {
	return nil, nil
}

// ends is a decision with which a workload ends, on one message.
func ends(id workload.ID, s *settled) *Decision {
	d := bus.Delivery{}.SettledBy(s)
	return &Decision{
		Changes: state.Changes{Updated: []workload.Record{{Workload: workload.Workload{ID: id}, Phase: workload.Succeeded}}},
		Batch:   []bus.Delivery{d}, settle: []func(){d.Ack},
	}
}

// Nothing of a decision is settled or leaves before it is written, and a workload that
// ends is known until then.
func TestAWriterSettlesWhatIsWritten(t *testing.T) {
	t.Parallel()
	away := errors.New("Postgres is away")
	for name, c := range map[string]struct {
		ledger                    ledger
		prepareErr, writeErr      error
		settled                   []string
		left                      int
		endingBefore, endingAfter int
	}{
		"written":      {settled: []string{"ack"}, left: 1, endingBefore: 1},
		"not prepared": {ledger: ledger{prepare: away}, prepareErr: away, settled: []string{"retry 0s"}},
		"not written":  {ledger: ledger{write: away}, writeErr: away, endingBefore: 1, endingAfter: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step, s, left := &Step{}, &settled{}, 0
			writer, decision := NewWriter(c.ledger, step), ends("w", s)
			ending := func() int {
				known := map[workload.ID]state.Known{}
				step.ending.addTo(known, []workload.ID{"w", "other"})
				return len(known)
			}
			err := writer.Prepare(decision)
			if !errors.Is(err, c.prepareErr) || ending() != c.endingBefore {
				t.Fatalf("prepared: %v, and %d workloads are ending; want %v and %d", err, ending(), c.prepareErr, c.endingBefore)
			}
			if err == nil {
				err = writer.Write(t.Context(), decision, func(out []store.Outgoing) { left += len(out) })
				if !errors.Is(err, c.writeErr) || ending() != c.endingAfter {
					t.Errorf("written: %v, and %d workloads are ending; want %v and %d", err, ending(), c.writeErr, c.endingAfter)
				}
			}
			if !slices.Equal(s.what, c.settled) || left != c.left {
				t.Errorf("the message was settled as %q, and %d left; want %q and %d", s.what, left, c.settled, c.left)
			}
		})
	}
}

// After a failed commit the queue writes nothing more: the decisions behind it rest on it,
// and their messages go to the next term. Those of the failed one wait for its diagnosis.
func TestACommitQueueEndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	away := errors.New("Postgres is away")
	writer := NewWriter(ledger{write: away}, &Step{})
	q := &commitQueue{
		writer: writer, handToRelay: func([]store.Outgoing) { t.Error("messages leave") },
		observe: func(state.Changes, time.Duration) { t.Error("a commit is counted") }, waiting: make(chan commit, 2),
	}
	first, second := &settled{}, &settled{}
	failing := ends("first", first)
	for _, decision := range []*Decision{failing, ends("second", second)} {
		if err := writer.Prepare(decision); err != nil {
			t.Fatal(err)
		}
		if err := q.add(t.Context(), commit{decision: decision}); err != nil {
			t.Fatal(err)
		}
	}
	var failed *commitError
	if err := q.run(t.Context()); !errors.As(err, &failed) || failed.decision != failing || !errors.Is(err, away) {
		t.Fatalf("the queue ends with %v", err)
	}
	if len(first.what) > 0 || !slices.Equal(second.what, []string{"retry 0s"}) {
		t.Errorf("the first message was settled as %q, the second as %q", first.what, second.what)
	}
}
