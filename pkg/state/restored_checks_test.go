package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// laterEpoch is that of the term that finds the ledger restored to an older state: a time in
// microseconds, as epochs are.
const laterEpoch = 1_764_288_000_000_123

// restore has the next term begin with the ledger as it is, and find what was published in
// the lost time.
func (s *stage) restore(ahead Ahead) {
	s.Helper()
	s.State.epoch = laterEpoch - 1
	s.replaceLeader(func() {
		s.Ahead(ahead, s.now)
		for _, id := range s.Checked() { // each in a part of its own
			s.Ahead(Ahead{AskAgain: true, Ask: []workload.ID{id}}, s.now)
		}
	})
}

// Decision logs of older releases ask all in the part that has the records.
func TestAllChecksAreAskedAgainWhereNoneAreNamed(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	c.sent()
	c.State.epoch = laterEpoch - 1
	c.replaceLeader(func() {
		c.Ahead(Ahead{LastRecords: []workload.Record{c.gang().Record}, AskAgain: true}, c.now)
	})
	c.wantSent("budget 1 closed", "licence 1 closed", fmt.Sprintf("budget %d open", laterEpoch), fmt.Sprintf("licence %d open", laterEpoch))
}

// A part asks about the workloads that it names, and about no other.
func TestAPartAsksAboutItsOwnWorkloadsOnly(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	c.sent()
	c.State.epoch = laterEpoch - 1
	c.replaceLeader(func() {
		c.Ahead(Ahead{LastRecords: []workload.Record{c.gang().Record}}, c.now)
		c.Ahead(Ahead{AskAgain: true, Ask: []workload.ID{"another"}}, c.now)
	})
	c.wantSent()
}

// What was asked in the lost time may have been answered under its number, also by a number
// that no stream has any more. So the next term asks by a number that was never used.
func TestNumbersOfTheLostTimeAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	t.Run("AdmissionChecks", func(t *testing.T) {
		t.Parallel()
		c := newChecking(t)
		c.sent()
		c.setChecks(nil) // as it was before
		c.restore(Ahead{})
		c.wantSent(fmt.Sprintf("budget %d open", laterEpoch), fmt.Sprintf("licence %d open", laterEpoch))
		c.check("budget", 1, workload.CheckReady)
		c.wantSent(fmt.Sprintf("budget %d open: it answers request 1, and the present one is %d", laterEpoch, laterEpoch))
		c.check("budget", laterEpoch, workload.CheckReady)
		c.check("licence", laterEpoch, workload.CheckReady)
		c.wantPhase(workload.Admitted, "")
	})
	t.Run("ProvisioningRequests", func(t *testing.T) {
		t.Parallel()
		a := newAsker(t)
		a.sent()
		a.endRequest(a.gang()) // as it was before
		a.gang().Provisioning = nil
		a.restore(Ahead{})
		a.wantSent(fmt.Sprintf("provision %s%d", strings.TrimSuffix(requestOne, "1"), laterEpoch))
	})
}

// Numbers that only events have are kept as used, for a later term that asks the gang first.
func TestNumbersOfEventsAreKeptAsUsed(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	c.sent()
	published := c.gang().Record
	asked := *published.Provisioning
	published.Provisioning = &asked
	c.setChecks(nil) // as it was before
	c.replaceLeader(func() {
		c.Ahead(Ahead{LastRecords: []workload.Record{published}, AskAgain: true}, c.now)
		if got := c.gang().checks(); got == nil || got.Number != asked.Checks.Number || got.Asked {
			t.Errorf("the checks are %+v, want number %d as used and nothing asked", got, asked.Checks.Number)
		}
	})
}

// setChecks has the gang be put to other checks than it is.
func (c *checking) setChecks(checks *workload.Checks) {
	e := c.gang()
	e.setChecks(checks)
	if checks == nil {
		e.Provisioning = nil
		delete(c.checked, e.ID)
	}
}

// A check that the ledger has as asked may have answered in the lost time, and does not answer
// the same again. It is asked by another number.
func TestChecksThatTheLedgerWaitsForAreAskedAgain(t *testing.T) {
	t.Parallel()
	asked := func(check string) string { return fmt.Sprintf("%s %d open", check, laterEpoch) }
	for name, test := range map[string]struct {
		agreed []string // before the lost time
		ahead  func(workload.Record) Ahead
		want   []string
	}{
		"its events are lost": {
			ahead: func(r workload.Record) Ahead { return Ahead{LastRecords: []workload.Record{r}} },
			want:  []string{"budget 1 closed", "licence 1 closed", asked("budget"), asked("licence")},
		},
		"its events are lost, and all have agreed": {
			agreed: []string{"budget", "licence"},
			ahead:  func(r workload.Record) Ahead { return Ahead{LastRecords: []workload.Record{r}} },
			want:   []string{"budget 1 closed", "licence 1 closed", asked("budget"), asked("licence")},
		},
		"events of another are lost": {
			agreed: []string{"budget"},
			ahead: func(r workload.Record) Ahead {
				r.ID = "another"
				return Ahead{LastRecords: []workload.Record{r}}
			},
			want: []string{"budget 1 closed", "licence 1 closed", asked("budget"), asked("licence")},
		},
		"nothing is known to be lost": {
			agreed: []string{"budget"},
			ahead:  func(workload.Record) Ahead { return Ahead{} },
			want:   []string{"budget 1 answered", "licence 1 open"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChecking(t)
			if len(test.agreed) == 2 {
				c.removeNode("n0") // so that it waits
			}
			for _, check := range test.agreed {
				c.check(check, 1, workload.CheckReady)
			}
			c.sent()
			c.restore(test.ahead(c.gang().Record))
			if len(test.agreed) == 2 {
				c.nodesCome()
				c.step(0)
			}
			c.wantSent(test.want...)
		})
	}
}

// The request that the ledger has was taken back in the lost time, and the command that says
// so is of a later epoch than the one that asked. The next term does not wait for nodes that
// are not asked for, and no command of the old request is the last one.
func TestARequestThatWasTakenBackInTheLostTimeIsMadeAgain(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.sent()
	forgotten := a.command(a.gang(), event.Forgotten)
	forgotten.Cluster, forgotten.Epoch = "c", laterEpoch-2
	a.restore(Ahead{Commands: []*event.GangCommand{forgotten}, LastRecords: []workload.Record{a.gang().Record}})
	a.wantPhase(workload.Queued, workload.ReasonProvisioning)
	want := []string{"forgotten " + requestOne, fmt.Sprintf("provision %s%d", strings.TrimSuffix(requestOne, "1"), laterEpoch)}
	if got := a.sent(); !slices.Equal(got, want) {
		t.Errorf("commands are %q, want %q", got, want)
	}
}
