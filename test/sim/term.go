package sim

import (
	"context"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/state/decisionlog"
	queuemanager "muster.dev/muster/services/queue-manager/simhooks"
)

// decides is the goroutine of a term that decides.
func (t *term) decides(p *proc) {
	tick, tidy := t.w.now.Add(tickEvery), t.w.now.Add(shortTerm)
	if t.w.tight() {
		tidy = t.w.now.Add(t.w.between(0, shortTerm))
	}
	for {
		if !t.configure(p) {
			return
		}
		ticked := false
		switch {
		case t.w.now.Before(tick) && len(t.commandsFound)+len(t.capacity)+len(t.status)+len(t.work) == 0 && (t.decide || t.behind > 0):
			p.park(tick.Sub(t.w.now))
			continue
		case !t.w.now.Before(tick):
			tick, ticked = t.w.now.Add(tickEvery), true
		}
		for len(t.decisions) > 1 { // one is written, one may wait
			p.park(time.Second)
		}
		if t.w.tight() && !t.w.now.Before(tidy) && len(t.decisions) == 0 { // nothing is on its way to be written
			tidy = t.w.now.Add(shortTerm)
			clear(t.m.remembered(t.epoch))
			if t.w.call(postgresServer, "tidy", func() error {
				if err := t.w.disk.fence(t.epoch); err != nil {
					return err
				}
				t.w.disk.tidy()
				return nil
			}) != nil {
				return
			}
		}
		if ticked {
			t.do(decisionlog.Input{Kind: decisionlog.Tick, Grace: nodeGrace})
			t.ask()
			t.keepStreams()
			if t.checkReleased() {
				return
			}
		}
		resent := t.sendAgain()
		batch := t.gather()
		t.w.check.reads(t, batch)
		if !t.runStep(batch) {
			return
		}
		t.resent = append(t.resent, resent...)
		t.noteResent()
		if !t.decide && t.behind <= 0 && len(t.capacity)+len(t.status) == 0 {
			t.decide = true
			t.do(decisionlog.Input{Kind: decisionlog.CheckRights})
			t.do(decisionlog.Input{Kind: decisionlog.BeginDecisions})
			if !t.runStep(nil) {
				return
			}
		}
	}
}

// ask asks what the state wants to know, as the engine does.
func (t *term) ask() {
	if t.w.Bug == BugUnpublished {
		return
	}
	if t.decide && t.announced < 10 {
		t.announced++
		t.w.net.ask(t.m, &event.ReportWanted{Cluster: clusterName, Epoch: t.epoch})
	}
	for _, q := range t.step.State.Questions() {
		t.w.net.ask(t.m, &event.ReportWanted{Cluster: q.Cluster, Epoch: t.epoch, Workload: q.Workload, Node: q.Node, Ask: q.Ask})
	}
}

// do does something to the state that is no message.
func (t *term) do(in decisionlog.Input) {
	in.At = t.now()
	t.step.Do(in)
}

// gather takes what has arrived, observations before submissions.
func (t *term) gather() (batch []bus.Delivery) {
	limit := batchLimit
	if t.single > 0 {
		t.single, limit = t.single-1, 1
	}
	for _, from := range []*[]bus.Delivery{&t.capacity, &t.status, &t.work} {
		n := min(len(*from), limit-len(batch))
		batch = append(batch, (*from)[:n]...)
		*from = append([]bus.Delivery(nil), (*from)[n:]...)
	}
	return batch
}

func (t *term) runStep(batch []bus.Delivery) bool {
	now := t.now()
	if t.w.Bug == BugClock && t.decide && len(batch) > 0 {
		t.step.State.Decide(now.Add(time.Duration(1+t.w.random.IntN(5)) * time.Microsecond))
	}
	decision, err := t.step.Apply(context.Background(), batch, t.decide, now)
	for _, illegal := range t.step.State.DrainIllegalTransitions() {
		t.w.breach("G4", "%s went from %s to %s", t.w.submits.nameOf(illegal.Workload), illegal.From, illegal.To)
	}
	if err != nil {
		return false
	}
	if decision != nil {
		t.w.check.checkSilence(t, decision.Changes)
		if t.writer.Prepare(decision) != nil {
			return false
		}
		t.decisions = append(t.decisions, decision)
		t.committer.wake()
	}
	return true
}

// commits writes one decision after the other.
func (t *term) commits(p *proc) {
	for {
		for len(t.decisions) == 0 {
			p.park(time.Hour)
		}
		next := t.decisions[0]
		if err := t.writer.Write(context.Background(), next, func(out []queuemanager.Outgoing) { t.relay.Hand(out); t.wakePublishers() }); err != nil {
			t.failed, t.cause = next, err
			t.w.narrate("%s: commit %d of epoch %d failed: %v", t.m.name, next.Changes.Version, next.Changes.Epoch, err)
			return // what was not written is given back at the end of the term
		}
		t.decisions = t.decisions[1:]
		t.noteResent()
		t.decider.wake()
	}
}

// relays runs a publisher of the relay.
func (t *term) relays(p *proc, steps queuemanager.RelaySteps, publisher int) {
	ctx := context.Background()
	if steps.Begin(ctx, publisher) != nil {
		return
	}
	tick, check := t.w.now, t.w.now
	for {
		did, err := steps.Next(ctx, publisher)
		if err == nil && t.w.now.Sub(tick) >= time.Second {
			tick, err = t.w.now, steps.Tick(ctx, publisher)
		}
		if err != nil {
			return
		}
		if t.w.now.Sub(check) >= checkEvery {
			check = t.w.now
			t.relay.Check()
			t.wakePublishers()
		}
		if !did {
			p.park(time.Second)
		}
	}
}

// now is the time of the term.
func (t *term) now() time.Time { return t.clock.Add(t.w.now.Sub(t.began)) }

func (t *term) wakePublishers() {
	for _, p := range t.publishers {
		p.wake()
	}
}

func (t *term) takeWork(d bus.Delivery) { t.work = append(t.work, d); t.decider.wake() }

func (t *term) subscribe() {
	caughtUp := func() { t.behind--; t.decider.wake() }
	t.behind = 2
	t.readers = []*reader{
		t.w.net.follow(t.m, bus.CapacityStream, "muster.capacity.", func(d bus.Delivery) { t.capacity = append(t.capacity, t.readReport(d)); t.decider.wake() }, caughtUp),
		t.w.net.follow(t.m, bus.StatusStream, "muster.status.", func(d bus.Delivery) { t.status = append(t.status, d); t.decider.wake() }, caughtUp),
	}
	t.hand = t.w.net.work(t.m, bus.WorkloadStream, true, t.takeWork)
}

// spawn begins a part of the term; when it returns, the term is over.
func (t *term) spawn(name string, body func(*proc)) *proc {
	p := t.m.spawn(name, func(p *proc) {
		body(p)
		t.over = true
	})
	t.procs = append(t.procs, p)
	return p
}

// stop ends the parts of the term.
func (t *term) stop() {
	t.over = true
	for _, p := range t.procs {
		p.kill()
	}
}

// end ends the term; what was not settled comes again.
func (t *term) end() {
	t.stop()
	for _, r := range t.readers {
		r.stop()
	}
	if t.hand != nil {
		t.hand.gone = true
	}
	if t.m.dead {
		return
	}
	t.w.disk.unlock(t.session)
	redeliver := slices.Clone(t.work)
	for _, d := range t.decisions {
		redeliver = append(redeliver, d.Batch...)
	}
	for _, d := range redeliver {
		d.Retry(0)
	}
}
