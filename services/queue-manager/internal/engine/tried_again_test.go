package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// aligned is a time at which something may be due.
func aligned() time.Time { return time.Unix(1_800_000_000, 0).UTC() }

// A quota that takes what is used again is not in quarantine any more, and is forgotten once its next
// refusal is the first again.
func TestAQuotaLeavesQuarantineByItself(t *testing.T) {
	t.Parallel()
	now := aligned()
	m := NewMemory()
	m.StartTerm(4, 5)
	m.Remember(Diagnosis{Quarantined: []state.Quarantined{
		{Scope: "clusterQueue q", Level: state.QuarantineHeld, Tries: 1, Until: now.Add(firstHeld)},
		{Node: admission.NodeKey{Cluster: "c", Name: "n"}, Tries: 1},
	}})
	for i, step := range []struct {
		after       time.Duration
		out, stored int
	}{{0, 2, 2}, {firstHeld, 1, 2}, {firstHeld + longestHeld, 1, 1}} {
		at := now.Add(step.after)
		m.StartTerm(int64(5+i), int64(6+i))
		m.ApplyTo(&Step{State: state.New(int64(6+i), state.Stored{}), Logger: zap.NewNop()}, at)
		if out := m.KeptOut(at); out != step.out || len(m.quarantined) != step.stored {
			t.Errorf("after %s %d are kept out and %d remembered, want %d and %d", step.after, out, len(m.quarantined), step.out, step.stored)
		}
	}
}

// Nodes that are over at about the same time are tried again in one term.
func TestWhatIsDueTogetherTakesOneTerm(t *testing.T) {
	t.Parallel()
	begun, m := aligned(), NewMemory()
	for i := range 20 {
		until := begun.Add(time.Second + time.Duration(i)*200*time.Millisecond)
		m.Remember(Diagnosis{Quarantined: []state.Quarantined{{Node: admission.NodeKey{Cluster: "c", Name: fmt.Sprint(i)}, Tries: 1, Until: until}}})
	}
	terms, term := 0, begun
	for now := begun; now.Before(begun.Add(time.Minute)); now = now.Add(tickEvery) {
		if m.Due(term, now) {
			terms, term = terms+1, now
		}
	}
	if terms != 1 {
		t.Errorf("they take %d terms, want 1", terms)
	}
}

// A term that ends to try something again may be short: what was refused before it still is.
func TestATermThatEndsToTryAgainForgetsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ended       error
		over, known bool
	}{
		"something is due":       {errDue, true, true},
		"something was released": {errReleased, true, false},
		"it lasted long enough":  {errTermOver, true, false},
		"it failed":              {errors.New("Postgres is away"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, message := NewMemory(), bus.Delivery{Subject: "s", Data: []byte("{}")}
			m.Remember(Diagnosis{Unrecorded: true, Dropped: []Refused{{message, errors.New("no")}}})
			m.persisted = 2
			if over := m.over(fmt.Errorf("term of epoch 1: %w", c.ended)); over != c.over {
				t.Errorf("it has ended in order: %t, want %t", over, c.over)
			}
			if _, known := m.poison.cause(message); known != c.known || m.unrecorded != c.known {
				t.Errorf("the message is known: %t, and decisions are unrecorded: %t; want %t", known, m.unrecorded, c.known)
			}
			if c.over && m.persisted != 0 {
				t.Errorf("%d failures are counted", m.persisted)
			}
		})
	}
}

// What was kept out of decisions until a time counts for the same SQLSTATE and for a while.
func TestWhatIsOverCountsNoMore(t *testing.T) {
	t.Parallel()
	now := aligned()
	record := workload.Record{Workload: workload.Workload{ID: refusedID, Queue: "q"}, Attempt: 1}
	changed := state.Changes{Version: 7, Updated: []workload.Record{record}}
	for name, c := range map[string]struct {
		ago   time.Duration
		code  string
		level state.QuarantineLevel // 0 for nothing
	}{
		"refused for good":              {50 * time.Minute, "XX123", state.QuarantineFailed},
		"refused for good, soon":        {time.Minute, "XX123", state.QuarantineFailed},
		"again after long":              {50 * time.Minute, "40P01", 0},
		"again at once":                 {time.Minute, "40P01", state.QuarantineFrozen},
		"at once, for something else":   {time.Minute, "57014", 0},
		"after long for something else": {50 * time.Minute, "57014", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := NewMemory()
			memory.Remember(Diagnosis{Quarantined: []state.Quarantined{
				{Workload: refusedID, Level: state.QuarantineFrozen, Tries: 3, Until: now.Add(-c.ago), Why: refusalWith("40P01").Error()},
			}})
			cause := refusalWith(c.code)
			writer := NewWriter(refusing{refused: []store.Refusal{{Part: store.PartMessage, Workload: refusedID, Cause: cause}}}, &Step{})
			found, err := writer.Diagnose(t.Context(), &Decision{Changes: changed}, cause, memory, now)
			if err != nil || found.Empty() != (c.level == 0) {
				t.Fatalf("it finds %+v, %v", found, err)
			}
			if c.level > 0 && (found.Quarantined[0].Level != c.level || found.Quarantined[0].Tries != 4) {
				t.Errorf("in quarantine is %+v; want level %d and the fourth try", found.Quarantined[0], c.level)
			}
		})
	}
}

// The ledger forgets what was tried again by itself: that releases nothing.
func TestWhatTheLedgerForgetsIsNotReleased(t *testing.T) {
	t.Parallel()
	begun := aligned()
	kept := []state.Quarantined{
		{Node: admission.NodeKey{Cluster: "c", Name: "over"}, Tries: 1, Until: begun},
		{Node: admission.NodeKey{Cluster: "c", Name: "early"}, Tries: 1, Until: begun.Add(time.Minute)},
		// Its time has come, but the term keeps it out until it is tried again.
		{Node: admission.NodeKey{Cluster: "c", Name: "just over"}, Tries: 1, Until: begun.Add(time.Second)},
		{Node: admission.NodeKey{Cluster: "c", Name: "for good"}, Tries: 1},
		{Workload: "held", Level: state.QuarantineHeld, Tries: 1, Until: begun.Add(time.Second)},
	}
	m := NewMemory()
	m.Sync(kept, begun, begun)
	if released := m.Sync(nil, begun, begun.Add(2*time.Second)); !slices.Equal(released, []string{"c/early", "c/for good", "c/just over"}) {
		t.Errorf("released are %q", released)
	}
	if len(m.quarantined) > 0 || m.InQuarantine() {
		t.Errorf("remembered are %+v", m.quarantined)
	}
}

// A workload that has ended is nothing to try again, when the ledger forgets it; one that was not
// read is.
func TestWhatHasEndedIsNotReleased(t *testing.T) {
	t.Parallel()
	s := state.New(1, state.Stored{
		MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"ns"}}},
		Workloads: []state.StoredWorkload{{Order: 1, Record: workload.Record{
			Workload: workload.Workload{ID: "live", Queue: "q", Name: "gang", Namespace: "ns"}, Phase: workload.Queued,
		}}},
		Unread: []state.Quarantined{{Workload: "unread", Level: state.QuarantineFrozen}},
	})
	l := &leader{state: s}
	for key, ended := range map[string]bool{"c/n": false, "live": false, "unread": false, "ended": true} {
		if got := l.hasEnded(key); got != ended {
			t.Errorf("%s has ended: %t", key, got)
		}
	}
}

// TestWhatIsOverBeforeTheTermDecidesEndsNoTerm: a term that reads for long keeps out what is in
// quarantine when it has read. What was over by then is part of it, and nothing to try again.
func TestWhatIsOverBeforeTheTermDecidesEndsNoTerm(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Minute)
	for name, until := range map[string]time.Duration{
		"it is over while the term reads": 30 * time.Second, "it was over before": -time.Second, "it lasts": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := state.New(1, state.Stored{})
			l := &leader{state: s, step: &Step{State: s, Logger: zap.NewNop()}, memory: NewMemory(), clock: clock{began}, Options: Options{Logger: zap.NewNop()}}
			l.memory.Remember(Diagnosis{Quarantined: []state.Quarantined{
				{Node: admission.NodeKey{Cluster: "c", Name: "n"}, Tries: 1, Until: began.Add(until)},
			}})
			l.keepOut()
			if err := l.checkReleased(t.Context()); err != nil {
				t.Errorf("the term ends: %v", err)
			}
		})
	}
}
