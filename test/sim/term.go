//go:build sim

package sim

import (
	"context"
	"encoding/json"
	"time"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/workload"
	queuemanager "muster.dev/muster/services/queue-manager/step"
)

// decides is the goroutine of a term that decides.
func (t *term) decides(p *proc) {
	tick := t.w.now.Add(tickEvery)
	for {
		ticked := false
		switch {
		case t.w.now.Before(tick) && len(t.missing)+len(t.capacity)+len(t.status)+len(t.work) == 0 && (t.decide || t.behind > 0):
			p.park(tick.Sub(t.w.now))
			continue
		case !t.w.now.Before(tick):
			tick, ticked = t.w.now.Add(tickEvery), true
		}
		for len(t.decisions) > 1 { // one is written, one may wait
			p.park(time.Second)
		}
		now := t.m.now()
		if ticked {
			t.books(func(b *book.Book) { b.Tick(now, nodeGrace) })
		}
		for _, missing := range t.missing {
			t.books(func(b *book.Book) {
				b.RepeatCommands(now, func(subject string) bool { return missing.All || !missing.Present[subject] })
			})
		}
		t.missing = nil
		batch := t.gather()
		if !t.decide && t.behind <= 0 && len(t.capacity)+len(t.status) == 0 {
			t.decide = true
			t.books((*book.Book).RewriteNodes)
		}
		if !t.step(batch, now) {
			return
		}
	}
}

// books does something with the book and its twin.
func (t *term) books(do func(*book.Book)) {
	do(t.desk.Book)
	if t.twin != nil {
		do(t.twin.Book)
	}
}

// gather takes what has arrived, observations before submissions.
func (t *term) gather() (batch []bus.Delivery) {
	for _, from := range []*[]bus.Delivery{&t.capacity, &t.status, &t.work} {
		n := min(len(*from), batchLimit-len(batch))
		batch = append(batch, (*from)[:n]...)
		*from = append([]bus.Delivery(nil), (*from)[n:]...)
	}
	return batch
}

func (t *term) step(batch []bus.Delivery, now time.Time) bool {
	if t.w.Bug == BugClock && len(batch) > 0 {
		now = now.Add(time.Duration(t.w.random.IntN(2)) * time.Microsecond)
	}
	decision, err := t.desk.Take(context.Background(), batch, t.decide, now)
	if err != nil {
		return false
	}
	t.compare(batch, decision, now)
	if decision != nil {
		t.decisions = append(t.decisions, decision)
		t.committer.wake()
	}
	return true
}

// compare has the twin decide the same: G8.
func (t *term) compare(batch []bus.Delivery, decision *queuemanager.Decision, now time.Time) {
	if t.twin == nil {
		return
	}
	if t.w.Bug == BugClock {
		now = t.m.now()
	}
	silent := make([]bus.Delivery, len(batch))
	for i, d := range batch {
		silent[i] = d.SettledBy(nobody{})
	}
	again, err := t.twin.Take(context.Background(), silent, t.decide, now)
	if err != nil {
		t.w.breach("G8", "the same input cannot be taken twice: %v", err)
		return
	}
	if again != nil {
		_ = t.twin.Write(context.Background(), again, func([]queuemanager.Outgoing) {})
	}
	if (decision == nil) != (again == nil) {
		t.w.breach("G8", "the same input gives a decision once, and none the other time")
		return
	}
	if decision == nil {
		return
	}
	first, _ := json.Marshal(decision.Changes) // plain data can always be encoded
	second, _ := json.Marshal(again.Changes)
	if string(first) != string(second) {
		t.w.breach("G8", "the same input gives two decisions:\n%s\n%s", first, second)
	}
	t.w.check.decisions++
}

// commits writes one decision after the other.
func (t *term) commits(p *proc) {
	for {
		for len(t.decisions) == 0 {
			p.park(time.Hour)
		}
		next := t.decisions[0]
		if err := t.desk.Write(context.Background(), next, func(out []queuemanager.Outgoing) { t.relay.Hand(out); t.wakeLanes() }); err != nil {
			t.w.tell("%s: commit %d of epoch %d failed: %v", t.m.name, next.Changes.Version, next.Changes.Epoch, err)
			return // what was not written is given back at the end of the term
		}
		t.decisions = t.decisions[1:]
		t.decider.wake()
	}
}

// relays is a lane of the relay.
func (t *term) relays(p *proc, steps queuemanager.RelaySteps, lane int) {
	ctx := context.Background()
	if steps.Begin(ctx, lane) != nil {
		return
	}
	remember, check := t.w.now, t.w.now
	for {
		did, err := steps.Next(ctx, lane)
		if err == nil && t.w.now.Sub(remember) >= time.Second {
			remember, err = t.w.now, steps.Remember(ctx, lane)
		}
		if err != nil {
			return
		}
		if t.w.now.Sub(check) >= checkEvery {
			check = t.w.now
			t.relay.Check()
			t.wakeLanes()
		}
		if !did {
			p.park(time.Second)
		}
	}
}

// replayed answers what was recorded, and writes nothing.
type replayed struct {
	known map[workload.ID]book.Known
}

// Known implements queuemanager.Ledger.
func (r *replayed) Known(context.Context, []workload.ID) (map[workload.ID]book.Known, error) {
	known := map[workload.ID]book.Known{}
	for id, k := range r.known {
		known[id] = k
	}
	return known, nil
}

// Prepare implements queuemanager.Ledger.
func (r *replayed) Prepare(book.Changes) (queuemanager.Transaction, error) { return r, nil }

// Write implements queuemanager.Transaction.
func (r *replayed) Write(context.Context) ([]queuemanager.Outgoing, error) { return nil, nil }

// recording keeps what the ledger answers.
type recording struct {
	*ledger
	to *replayed
}

// Known implements queuemanager.Ledger.
func (r *recording) Known(ctx context.Context, ids []workload.ID) (map[workload.ID]book.Known, error) {
	known, err := r.ledger.Known(ctx, ids)
	r.to.known = map[workload.ID]book.Known{}
	for id, k := range known {
		r.to.known[id] = k
	}
	return known, err
}

// nobody is told of what becomes of the twin's messages.
type nobody struct{}

// Ack implements bus.Settler.
func (nobody) Ack() error { return nil }

// NakWithDelay implements bus.Settler.
func (nobody) NakWithDelay(time.Duration) error { return nil }

// TermWithReason implements bus.Settler.
func (nobody) TermWithReason(string) error { return nil }

// InProgress implements bus.Settler.
func (nobody) InProgress() error { return nil }
