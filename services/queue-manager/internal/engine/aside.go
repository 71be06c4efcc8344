package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/journal"
	"muster.dev/muster/pkg/workload"
)

// Asides are what is set aside, by the id of the workload, or by CLUSTER/NODE.
type Asides map[string]book.Aside

func keyOf(a book.Aside) string {
	if a.Node.Name != "" {
		return a.Node.Cluster + "/" + a.Node.Name
	}
	return string(a.Workload)
}

// Add notes what is set aside.
func (a Asides) Add(more ...book.Aside) {
	for _, one := range more {
		a[keyOf(one)] = one
	}
}

// Apply has the book keep out of decisions what is set aside. It is for the begin
// of a term, before any message is taken in.
func (a Asides) Apply(desk *Desk, now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		aside := a[key]
		desk.Do(journal.Input{Kind: journal.SetAside, At: now, Aside: &aside})
	}
}

// memory is what a process keeps from one term to the next. It mirrors nothing of
// the ledger: what is in it concerns terms that failed.
type memory struct {
	poison poison
	// aside is what could not be stored. What is in quarantine in the ledger, too, is
	// released by whoever removes it there.
	aside  Asides
	stored map[string]bool // of aside, what is in the ledger
	told   map[string]int  // of aside, what events have said, by its tries
	// unrecorded: decisions cannot be recorded.
	unrecorded bool
	// failures counts the terms that failed for what was in their commits, one after
	// the other, and nothing was found to blame.
	failures int
}

func newMemory() *memory {
	return &memory{poison: poison{}, aside: Asides{}, stored: map[string]bool{}, told: map[string]int{}}
}

// read brings the memory up to date with what is in quarantine. It reports what has
// been released.
func (m *memory) read(quarantined []book.Aside) (released []string) {
	there := map[string]bool{}
	for _, a := range quarantined {
		there[keyOf(a)] = true
		m.aside.Add(a)
	}
	for key := range m.stored {
		if !there[key] {
			released = append(released, key)
			delete(m.aside, key)
		}
	}
	m.stored = there
	slices.Sort(released)
	return released
}

// setAside begins the term with what is set aside.
func (e *engine) setAside(ctx context.Context) error {
	quarantined, err := e.Store.Quarantined(ctx)
	if err != nil {
		return err
	}
	e.memory.read(quarantined)
	e.desk.Unrecorded = e.memory.unrecorded
	e.memory.aside.Apply(e.desk, e.clock.now())
	e.Metrics.aside.Set(float64(len(e.memory.aside)))
	for key, a := range e.memory.aside {
		if tries, told := e.memory.told[key]; e.book.IsKept(a.Workload) && (!told || tries != a.Tries) {
			e.memory.told[key] = a.Tries
			e.announceKept(ctx, a)
		}
	}
	return nil
}

// errReleased ends a term: what was set aside is read and tried again.
var errReleased = fmt.Errorf("something was released from quarantine: %w", errTermOver)

// lookEvery is how often the leader looks whether something was released.
const lookEvery = 2 * time.Second

// checkReleased ends the term when something was released from quarantine. When the
// ledger cannot be asked, that shows elsewhere.
func (e *engine) checkReleased(ctx context.Context) error {
	if len(e.memory.stored) == 0 || e.clock.now().Sub(e.looked) < lookEvery {
		return nil
	}
	e.looked = e.clock.now()
	quarantined, err := e.Store.Quarantined(ctx)
	if err != nil {
		return nil
	}
	if released := e.memory.read(quarantined); len(released) > 0 {
		e.Logger.Info("released from quarantine", zap.Strings("released", released))
		return errReleased
	}
	return nil
}

// convict deals with a commit that the database refused: what cannot be stored is
// found and set aside, so that the next term goes on without it. The term is over,
// and nothing uses the book any more.
func (e *engine) convict(ctx context.Context, epoch int64, failed *commitError) {
	var verdict Verdict
	defer func() { giveBack(verdict.others(failed.Batch)) }()
	var err error
	verdict, err = e.desk.Blame(ctx, failed.Decision, failed.cause, e.memory.aside, e.clock.now())
	if err != nil {
		e.Logger.Error("a commit was refused, and it is not known for what", zap.Error(err), zap.NamedError("refusal", failed.cause))
		return
	}
	failed.blamed = !verdict.Empty()
	e.memory.unrecorded = e.memory.unrecorded || verdict.Unrecorded
	if verdict.Unrecorded {
		e.Metrics.setAside.WithLabelValues("record").Inc()
		e.Logger.Error("decisions cannot be recorded: they are made without, and cannot be replayed", zap.Error(failed.cause))
	}
	for _, r := range verdict.Rejected {
		e.reject(ctx, r)
	}
	for _, r := range verdict.Dropped {
		e.Metrics.setAside.WithLabelValues("message").Inc()
		e.memory.poison.add(r.Delivery, "what it says cannot be stored: "+r.Cause.Error())
	}
	e.quarantine(ctx, epoch, verdict.Aside)
}

// quarantine sets workloads and nodes aside, from the next term on.
func (e *engine) quarantine(ctx context.Context, epoch int64, aside []book.Aside) {
	if len(aside) == 0 {
		return
	}
	e.memory.aside.Add(aside...)
	for _, a := range aside {
		what := "workload"
		if a.Node.Name != "" {
			what = "node"
		}
		e.Metrics.setAside.WithLabelValues(what).Inc()
		e.Logger.Error("set aside: the database refuses to store it", zap.String("what", what), zap.String("name", keyOf(a)),
			zap.Int("level", int(a.Level)), zap.Time("until", a.Until), zap.String("reason", a.Why))
	}
	if err := e.Store.Quarantine(ctx, epoch, aside); err != nil {
		e.Logger.Error("quarantine cannot be stored: only this process knows of it", zap.Error(err))
	}
}

// announceKept publishes the reason of a workload of which nothing can be written,
// not even an event through the outbox.
func (e *engine) announceKept(ctx context.Context, a book.Aside) {
	record, live := e.book.Record(a.Workload)
	if !live {
		return
	}
	id := fmt.Sprintf("queue-manager/aside/%s/%d/%d", a.Workload, e.epoch, a.Tries)
	kept, err := event.New(id, "muster/queue-manager", time.Now(), &event.WorkloadChanged{Record: record})
	if err == nil {
		err = e.Bus.Publish(ctx, bus.EventsSubject(record.Queue, record.ID), kept)
	}
	if err != nil {
		e.Logger.Warn("no event says that a workload is set aside", zap.String("workload", string(a.Workload)), zap.Error(err))
	}
}

// reject gives a submission up that cannot be stored: its submitter learns why, and
// the message is kept with the reason.
func (e *engine) reject(ctx context.Context, r Refused) {
	_, payload, _ := r.Event()
	submitted, ok := payload.(*event.WorkloadSubmitted)
	if !ok {
		return
	}
	w := submitted.Workload
	reason := "the submission cannot be stored: " + r.Cause.Error()
	e.Metrics.setAside.WithLabelValues("submission").Inc()
	e.Logger.Error("submission rejected: it cannot be stored", zap.String("workload", string(w.ID)), zap.Error(r.Cause))
	e.memory.poison.add(r.Delivery, reason) // should burying it fail
	rejection, err := event.New("queue-manager/unstorable/"+string(w.ID), "muster/queue-manager", time.Now(), &event.WorkloadRejected{
		Workload: w.ID, Queue: w.Queue, MessageID: submitted.MessageID,
		Reason: workload.Reason{Kind: workload.ReasonNotStorable, Message: reason},
	})
	if err == nil {
		err = e.Bus.Publish(ctx, bus.EventsSubject(w.Queue, w.ID), rejection)
	}
	if err != nil {
		e.Logger.Error("no event says that a submission was rejected", zap.String("workload", string(w.ID)), zap.Error(err))
	}
	e.desk.bury(ctx, r.Delivery, reason)
}
