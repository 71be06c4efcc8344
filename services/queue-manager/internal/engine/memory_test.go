package engine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// What a process has set aside, and the next leader's operator has released, is
// released for that process, too, when it leads again.
func TestWhatIsReleasedWhileAnotherLeads(t *testing.T) {
	t.Parallel()
	quarantined := []state.Quarantined{{Node: admission.NodeKey{Cluster: "c", Name: "n"}, Tries: 1, Why: "refused"}}
	m := NewMemory()
	m.Remember(Diagnosis{Quarantined: quarantined})
	if err := m.Store(quarantined, func([]state.Quarantined) error { return nil }); err != nil {
		t.Fatal(err)
	}
	// Another process leads, and an operator releases it there.
	if released := m.Sync(nil, time.Now(), time.Now()); !slices.Equal(released, []string{"c/n"}) {
		t.Errorf("released is %v", released)
	}
	s := state.New(2, state.Stored{})
	step := &Step{State: s, Logger: zap.NewNop()}
	m.ApplyTo(step, time.Now())
	if len(m.quarantined) > 0 {
		t.Errorf("the next term still sets aside %v", m.quarantined)
	}
}

// What could not be written to the ledger stays set aside, and is written when the
// process leads again: an operator can only release what is there.
func TestWhatCouldNotBeKeptIsKeptLater(t *testing.T) {
	t.Parallel()
	quarantined := []state.Quarantined{{Node: admission.NodeKey{Cluster: "c", Name: "n"}, Tries: 1, Why: "refused"}}
	m := NewMemory()
	m.Remember(Diagnosis{Quarantined: quarantined})
	away := errors.New("the ledger is away")
	if err := m.Store(quarantined, func([]state.Quarantined) error { return away }); !errors.Is(err, away) {
		t.Fatalf("kept with %v", err)
	}
	s := state.New(2, state.Stored{})
	if released := m.Sync(nil, time.Now(), time.Now()); len(released) > 0 {
		t.Errorf("released is %v", released)
	}
	unkept := m.Unstored(s)
	if len(unkept) != 1 || unkept[0] != quarantined[0] {
		t.Fatalf("to be written is %v", unkept)
	}
	if err := m.Store(unkept, func([]state.Quarantined) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if again := m.Unstored(s); len(again) > 0 {
		t.Errorf("still to be written is %v", again)
	}
	if released := m.Sync(nil, time.Now(), time.Now()); !slices.Equal(released, []string{"c/n"}) {
		t.Errorf("released is %v", released)
	}
}

// What could not be written is of the terms that follow each other in one process: once
// another process has led, an operator may have released it there.
func TestWhatCouldNotBeKeptIsForgottenWhenAnotherHasLed(t *testing.T) {
	t.Parallel()
	quarantined := []state.Quarantined{{Node: admission.NodeKey{Cluster: "c", Name: "n"}, Tries: 1, Why: "refused"}}
	for name, c := range map[string]struct {
		before int64 // the epoch before the second term of the process
		unkept []state.Quarantined
	}{
		"the process leads again": {before: 5, unkept: quarantined},
		"another has led":         {before: 7},
		"the ledger is older":     {before: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMemory()
			m.StartTerm(4, 5)
			m.Remember(Diagnosis{Quarantined: quarantined})
			m.StartTerm(c.before, 9)
			m.Sync(nil, time.Now(), time.Now())
			if unkept := m.Unstored(state.New(9, state.Stored{})); !slices.Equal(unkept, c.unkept) {
				t.Errorf("to be written is %v, want %v", unkept, c.unkept)
			}
			m.StartTerm(9, 10) // the epoch of the same term was raised
			if unkept := m.Unstored(state.New(10, state.Stored{})); !slices.Equal(unkept, c.unkept) {
				t.Errorf("with a raised epoch, to be written is %v, want %v", unkept, c.unkept)
			}
		})
	}
}

// A workload that is set aside again after its release says so again.
func TestWhatIsQuarantinedAgainIsReportedAgain(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	quarantined := state.Quarantined{Workload: id, Level: state.QuarantineFrozen, Tries: 1, Why: "refused"}
	now := time.Unix(1_800_000_000, 0)
	m := NewMemory()
	m.StartTerm(4, 5)
	for round, name := range []string{"set aside", "set aside after the release"} {
		s := state.New(int64(5+round), state.Stored{
			MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"ns"}}},
			Workloads: []state.StoredWorkload{{Order: 1, Record: workload.Record{
				Workload: workload.Workload{ID: id, Queue: "q", Name: "gang", Namespace: "ns"}, Phase: workload.Queued,
			}}},
		})
		step := &Step{State: s, Logger: zap.NewNop()}
		m.Remember(Diagnosis{Quarantined: []state.Quarantined{quarantined}})
		m.Sync([]state.Quarantined{quarantined}, now, now)
		m.ApplyTo(step, now)
		if unannounced := m.Unannounced(s); !slices.Equal(unannounced, []state.Quarantined{quarantined}) {
			t.Errorf("%s: to be announced is %v", name, unannounced)
		}
		if again := m.Unannounced(s); len(again) > 0 {
			t.Errorf("%s: to be announced twice is %v", name, again)
		}
		m.Sync(nil, time.Now(), time.Now()) // an operator has released it
	}
}

// TestAWholeTermForgetsRefusals: decisions and past usage are stored again, and a message that
// was given up may come once more, when a term has ended in order.
func TestAWholeTermForgetsRefusals(t *testing.T) {
	t.Parallel()
	memory, message := NewMemory(), bus.Delivery{Subject: "s", Data: []byte("{}")}
	memory.Remember(Diagnosis{Unrecorded: true, NoPastUsage: true, NoLearned: true, Dropped: []Refused{{message, errors.New("no")}}})
	step := &Step{State: state.New(1, state.Stored{}), Logger: zap.NewNop()}
	memory.ApplyTo(step, time.Unix(0, 0))
	if _, known := step.poison.cause(message); !step.Unrecorded || !step.NoPastUsage || !step.NoLearned || !known {
		t.Fatalf("the next term does not know it: %+v", memory)
	}
	memory.afterWholeTerm()
	memory.ApplyTo(step, time.Unix(0, 0))
	if _, known := step.poison.cause(message); step.Unrecorded || step.NoPastUsage || step.NoLearned || known {
		t.Errorf("after a whole term it holds on: %+v", memory)
	}
}

// TestShortTermsForgetRefusals: terms that all end early, to try something again or because they
// fail, forget what was refused once that is as old as the longest term.
func TestShortTermsForgetRefusals(t *testing.T) {
	t.Parallel()
	const longest = time.Hour
	begin := time.Unix(1_800_000_000, 0)
	for name, refused := range map[string]Diagnosis{
		"decisions":                {Unrecorded: true},
		"past usage":               {NoPastUsage: true},
		"what evictions have cost": {NoLearned: true},
		"the content of a message": {Dropped: []Refused{{bus.Delivery{Subject: "s", Data: []byte("{}")}, errors.New("no")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMemory()
			known := func() bool { return m.unrecorded || m.noPastUsage || m.noLearned || len(m.poison) > 0 }
			m.forgetOldRefusals(longest, begin.Add(-2*longest)) // a term before
			m.Remember(refused)
			for _, step := range []struct {
				after time.Duration
				known bool
			}{{0, true}, {longest - time.Minute, true}, {longest, false}} {
				m.forgetOldRefusals(longest, begin.Add(step.after))
				if known() != step.known {
					t.Errorf("%s after the refusal it is known: %t, want %t", step.after, known(), step.known)
				}
			}
			m.Remember(refused) // it is refused once more, and a whole term ends in order
			m.forgetOldRefusals(longest, begin.Add(longest))
			m.afterWholeTerm()
			m.Remember(refused)
			m.forgetOldRefusals(longest, begin.Add(2*longest))
			if !known() {
				t.Error("a refusal after a whole term is forgotten at once")
			}
		})
	}
}
