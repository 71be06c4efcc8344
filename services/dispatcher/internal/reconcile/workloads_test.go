package reconcile

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAccept: the last command counts, by epoch and order; attempts do not matter.
func TestAccept(t *testing.T) {
	t.Parallel()
	known := &event.GangCommand{Workload: "w", Attempt: 2, Epoch: 5, Order: 7}
	for name, c := range map[string]struct {
		command event.GangCommand
		refused bool
	}{
		"a later epoch":               {command: event.GangCommand{Epoch: 6, Attempt: 2}},
		"a later order":               {command: event.GangCommand{Epoch: 5, Order: 8, Attempt: 2}},
		"the same again":              {command: event.GangCommand{Epoch: 5, Order: 7, Attempt: 2}},
		"an earlier order":            {command: event.GangCommand{Epoch: 5, Order: 6, Attempt: 2}, refused: true},
		"an earlier epoch":            {command: event.GangCommand{Epoch: 4, Order: 9, Attempt: 3}, refused: true},
		"of a restored ledger":        {command: event.GangCommand{Epoch: 6, Order: 1, Attempt: 1}},
		"a later epoch, lower orders": {command: event.GangCommand{Epoch: 6, Attempt: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkloads(nil)
			w.accept(known, time.Unix(0, 0))
			c.command.Workload = "w"
			got, later := w.accept(&c.command, time.Unix(1, 0))
			if (later == known) != c.refused || (got.wanted() == known) != c.refused {
				t.Errorf("refused by %v, wanted is %+v; want a refusal: %v", later, got.wanted(), c.refused)
			}
		})
	}
}

// TestForget: of a forgotten workload the command alone is kept, for a while, so that a
// late command does not bring it back.
func TestForget(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := rayCommand(1)
	p.Command(&command)
	if err := p.see(t, 1); err != nil || !p.status.Created {
		t.Fatalf("it is not created: %+v, %v", p.status, err)
	}
	forgotten := command
	forgotten.State, forgotten.Order = event.Forgotten, 9
	p.Command(&forgotten)
	p.cluster.answers["report w"] = errSilent
	if err := p.see(t, 1); err == nil {
		t.Fatal("the last status was not published, and the look succeeds")
	}
	delete(p.cluster.answers, "report w")
	before := p.reports
	if err := p.see(t, 2); err != nil {
		t.Fatal(err)
	}
	if got := p.reports - before; got != 1 {
		t.Errorf("the last status was published %d times, want once", got)
	}
	tracked := p.workloads.get("w")
	if _, reported := tracked.last(); reported || tracked.wanted() != &forgotten {
		t.Errorf("kept are %+v, want the command alone", tracked)
	}
	p.Command(&command)
	if tracked.wanted() != &forgotten {
		t.Error("a late command brings it back")
	}
	p.workloads.dropForgotten(p.clock.Add(forgottenKept))
	if p.workloads.get("w") == nil {
		t.Error("it is dropped too early")
	}
	p.workloads.dropForgotten(p.clock.Add(forgottenKept + 1))
	if p.workloads.get("w") != nil {
		t.Error("it is never dropped")
	}
}

// TestAskAndAnswer: each question about a workload gets one answer, after a look; of
// what the dispatcher does not know there is none.
func TestAskAndAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		question event.ReportWanted
		state    string
		answered bool
	}{
		"a known one":        {question: event.ReportWanted{Workload: "w", Cluster: "c", Ask: "q"}, state: event.Present, answered: true},
		"of another cluster": {question: event.ReportWanted{Workload: "w", Cluster: "other", Ask: "q"}, state: event.Present},
		"an unknown one":     {question: event.ReportWanted{Workload: "x", Cluster: "c", Ask: "q"}, state: event.Present},
		"a forgotten one":    {question: event.ReportWanted{Workload: "w", Cluster: "c", Ask: "q"}, state: event.Forgotten},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			command := rayCommand(1)
			command.State = c.state
			p.Command(&command)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			p.Ask(&c.question)
			p.cluster.answers["report w"] = errSilent
			_ = p.see(t, 1) // an answer that is not stored is repeated
			delete(p.cluster.answers, "report w")
			before := p.reports
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if got := p.status.Answers == "q"; got != c.answered {
				t.Errorf("answered is %v, want %v: %+v", got, c.answered, p.status)
			}
			if got := p.reports - before; got > 1 {
				t.Errorf("there are %d reports, want at most one", got)
			}
			if p.workloads.questions != 0 {
				t.Errorf("%d questions wait, want none", p.workloads.questions)
			}
		})
	}
}

// TestQuestionsAreBounded: no more than askedMost workloads wait for an answer, however
// often each is asked about.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	p := play(t)
	for i := range askedMost + 10 {
		command := rayCommand(1)
		command.Workload = workload.ID(fmt.Sprint(i))
		p.workloads.accept(&command, p.clock)
	}
	for range 2 {
		for i := range askedMost + 10 {
			p.Ask(&event.ReportWanted{Workload: workload.ID(fmt.Sprint(i)), Cluster: "c", Ask: "q"})
		}
	}
	if got := p.workloads.questions; got != askedMost {
		t.Errorf("%d questions wait, want %d", got, askedMost)
	}
	p.workloads.answered(p.workloads.get("0"), &event.ReportWanted{Ask: "another"})
	p.workloads.answered(p.workloads.get("1"), &event.ReportWanted{Ask: "q"})
	p.workloads.forget(p.workloads.get("2"))
	if got := p.workloads.questions; got != askedMost-2 {
		t.Errorf("%d questions wait after two are done with, want %d", got, askedMost-2)
	}
}

// TestRepeat: a status is published again only when that is asked for.
func TestRepeat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		repeat func(*played)
		want   int
	}{
		"not asked for":     {repeat: func(*played) {}},
		"all":               {repeat: func(p *played) { p.RepublishAll() }, want: 1},
		"some":              {repeat: func(p *played) { p.Republish(func(id workload.ID) bool { return id == "w" }) }, want: 1},
		"others":            {repeat: func(p *played) { p.Republish(func(id workload.ID) bool { return id != "w" }) }},
		"in the next part":  {repeat: func(p *played) { p.Ask(&event.ReportWanted{Epoch: 1}); p.RepublishNext() }, want: 1},
		"twice before once": {repeat: func(p *played) { p.RepublishAll(); p.RepublishAll() }, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			command := rayCommand(1)
			p.Command(&command)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			before := p.reports
			c.repeat(p)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if got := p.reports - before; got != c.want {
				t.Errorf("%d reports, want %d", got, c.want)
			}
		})
	}
}

// TestAnotherLeaderAsks: a question about everything shows whether the leader is new, and the
// first one of each leader makes the next round a hasty one.
func TestAnotherLeaderAsks(t *testing.T) {
	t.Parallel()
	const all, slow, hasty = 200, 2, 20
	var before []event.GangStatus
	for i := range all {
		before = append(before, event.GangStatus{Workload: workload.ID(fmt.Sprint(i)), Cluster: "c", Attempt: 1})
	}
	p := play(t, before...)
	for _, status := range before {
		command := rayCommand(1)
		command.Workload = status.Workload
		p.workloads.accept(&command, p.clock)
	}
	next := func() (statuses int) {
		p.RepublishNext()
		for _, w := range p.workloads.all() {
			if status, _ := w.last(); w.mustRepublish() {
				w.noteReported(status)
				statuses++
			}
		}
		return statuses
	}
	for i, step := range []struct {
		question event.ReportWanted
		another  bool
	}{
		{event.ReportWanted{Epoch: 3}, true},
		{event.ReportWanted{Epoch: 3}, false},
		{event.ReportWanted{Epoch: 4, Node: "n"}, false},
		{event.ReportWanted{Epoch: 4}, true},
	} {
		if got := p.Ask(&step.question); got != step.another {
			t.Errorf("question %d: another leader is %v, want %v", i+1, got, step.another)
		}
		want := slow
		if step.another {
			want = hasty
		}
		for part := range 11 { // ten of haste, and one
			if got := next(); part == 0 && got != want {
				t.Errorf("question %d: the next part has %d statuses, want %d", i+1, got, want)
			}
		}
	}
}
