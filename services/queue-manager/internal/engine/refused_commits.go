package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Diagnosis is what a commit failed for, when the database refused what was in it.
type Diagnosis struct {
	// Quarantined are the workloads and nodes to keep out of decisions from now on.
	Quarantined []state.Quarantined
	// Rejected are submissions that cannot be stored, Dropped other messages that
	// carry what cannot be stored. None of them may be taken in again.
	Rejected, Dropped []Refused
	// Unrecorded: decisions cannot be recorded. NoPastUsage: past usage cannot be stored.
	// NoLearned: what was learned cannot be stored.
	Unrecorded, NoPastUsage, NoLearned bool
}

// Refused is a message with the reason.
type Refused struct {
	bus.Delivery
	Cause error
}

// Empty reports whether nothing is to blame.
func (d Diagnosis) Empty() bool {
	return len(d.Quarantined) == 0 && len(d.Rejected) == 0 && len(d.Dropped) == 0 && !d.Unrecorded && !d.NoPastUsage && !d.NoLearned
}

// Others returns the messages of a batch that are to come again.
func (d Diagnosis) Others(batch []bus.Delivery) []bus.Delivery {
	gone := map[message]bool{}
	for _, r := range d.Rejected {
		gone[messageOf(r.Delivery)] = true
	}
	return slices.DeleteFunc(slices.Clone(batch), func(m bus.Delivery) bool { return gone[messageOf(m)] })
}

// Diagnose finds what of a decision the database refuses, whatever the SQLSTATE; one that
// passes by waiting when it has not passed for some terms. memory says what is set aside
// already. It is for a decision whose Write has failed,
// when the state is not used any more. An empty diagnosis means that nothing of the
// decision is to blame, or that all of it can be stored now.
func (w *Writer) Diagnose(ctx context.Context, decision *Decision, cause error, memory *Memory, now time.Time) (Diagnosis, error) {
	passing := memory.persisting(cause, decision.Changes, now)
	if !store.Suspect(cause) && (passing == "" || !w.commits(ctx, decision.Changes)) {
		return Diagnosis{}, nil
	}
	refused, err := w.store.Probe(ctx, decision.Changes, decision.record, passing)
	if err != nil {
		return Diagnosis{}, err
	}
	e := &examination{
		changes: decision.Changes, submitted: map[workload.ID]bus.Delivery{}, about: map[workload.ID][]bus.Delivery{},
		requests: map[workload.ID][]bus.Delivery{}, known: memory.quarantined, now: now, examined: map[workload.ID]bool{},
	}
	for _, message := range decision.Batch {
		e.index(message)
	}
	for _, r := range refused {
		e.blame(r)
	}
	return e.found, nil
}

// commits reports whether the database takes a commit of nothing, on the version of the ledger
// on which the changes rest.
func (w *Writer) commits(ctx context.Context, changes state.Changes) bool {
	nothing := state.Changes{Epoch: changes.Epoch, Version: changes.Version}
	if !changes.Empty() {
		nothing.Version--
	}
	transaction, err := w.store.Prepare(nothing, store.Record{})
	if err == nil {
		_, err = transaction(ctx)
	}
	return err == nil
}

// examination finds for each refusal what is to blame: a workload, a node, a message or
// the record.
type examination struct {
	changes   state.Changes
	submitted map[workload.ID]bus.Delivery
	about     map[workload.ID][]bus.Delivery // other messages
	requests  map[workload.ID][]bus.Delivery // those that ask something of a workload
	known     QuarantineSet
	now       time.Time
	examined  map[workload.ID]bool
	found     Diagnosis
}

// index notes which workload a message of the batch is about.
func (e *examination) index(d bus.Delivery) {
	_, payload, err := d.Event()
	if err != nil {
		return // it was given up
	}
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		e.submitted[p.Workload.ID] = d
	case event.Request:
		e.about[p.About()], e.requests[p.About()] = append(e.about[p.About()], d), append(e.requests[p.About()], d)
	case *event.GangStatus:
		e.about[p.Workload] = append(e.about[p.Workload], d)
	}
}

func (e *examination) blame(r store.Refusal) {
	switch {
	case r.Part == store.PartRecord:
		e.found.Unrecorded = true
		return
	case r.Part == store.PartPastUsage:
		e.found.NoPastUsage = true
		return
	case r.Part == store.PartLearned:
		e.found.NoLearned = true
		return
	case r.Workload == "":
		e.add(e.quarantineNode(r))
		return
	case r.Scope != "" && !e.moves(r.Workload):
		e.add(e.quarantineScope(r))
		return
	case e.examined[r.Workload]:
		return
	}
	e.examined[r.Workload] = true
	isNew := slices.ContainsFunc(e.changes.Added, func(a state.Added) bool { return a.ID == r.Workload })
	later := admissible(r) // it can be stored as one that waits
	submission, submitted := e.submitted[r.Workload]
	switch {
	case r.Part == store.PartAsked && len(e.requests[r.Workload]) > 0: // the workload itself can be stored
		e.drop(e.requests[r.Workload], r.Cause)
	case isNew && submitted && !later:
		e.found.Rejected = append(e.found.Rejected, Refused{submission, r.Cause})
	case !isNew && errors.Is(store.Explained(r.Cause), store.ErrBadData) && len(e.about[r.Workload]) > 0:
		e.drop(e.about[r.Workload], r.Cause)
	default:
		e.add(e.quarantine(r))
	}
}

// add puts something into quarantine, once.
func (e *examination) add(a state.Quarantined) {
	if !slices.ContainsFunc(e.found.Quarantined, func(other state.Quarantined) bool { return keyOf(other) == keyOf(a) }) {
		e.found.Quarantined = append(e.found.Quarantined, a)
	}
}

// drop gives up messages that carry what cannot be stored.
func (e *examination) drop(messages []bus.Delivery, cause error) {
	for _, d := range messages {
		e.found.Dropped = append(e.found.Dropped, Refused{d, cause})
	}
}

// quarantine returns how far a workload is kept out of decisions: as little as lets all
// others go on, and one level further each time that this is not enough.
func (e *examination) quarantine(r store.Refusal) state.Quarantined {
	before := e.known[string(r.Workload)]
	a := state.Quarantined{Workload: r.Workload, Level: state.QuarantineFailed, Tries: before.Tries + 1, Why: r.Cause.Error()}
	attempt := func(rows []state.Reservation) int {
		if i := slices.IndexFunc(rows, func(row state.Reservation) bool { return row.Workload == r.Workload }); i >= 0 {
			return rows[i].Attempt
		}
		return 0
	}
	switch admitted, replaced := attempt(e.changes.Reserved), attempt(e.changes.Replaced); {
	case admitted > 0 && admissible(r):
		a.Level, a.Until = state.QuarantineHeld, e.later(a.Tries)
		return a
	case store.Passing(r.Cause) != "":
		a.Level, a.Until = state.QuarantineFrozen, e.later(a.Tries)
		return a
	case (r.Part == store.PartPlaces || r.Part == store.PartCharges) && replaced > 0:
		a.Level, a.Attempt = state.QuarantineHeld, replaced
	case r.Part == store.PartEnd, r.Part == store.PartRelease, r.Part == store.PartCommit:
		a.Level = state.QuarantineFrozen
	}
	// What was kept out until a time has been tried since, and was not refused for good.
	if before.Until.IsZero() && before.Level >= a.Level && before.Attempt == a.Attempt {
		a.Level, a.Attempt = min(before.Level+1, state.QuarantineFrozen), 0
	}
	return a
}

// quarantineNode keeps a node out of decisions.
func (e *examination) quarantineNode(r store.Refusal) state.Quarantined {
	a := state.Quarantined{Node: r.Node, Why: r.Cause.Error()}
	a.Tries = e.known[keyOf(a)].Tries + 1
	if store.Passing(r.Cause) != "" {
		a.Until = e.later(a.Tries)
	}
	return a
}

// moves reports whether a started workload gets other places.
func (e *examination) moves(id workload.ID) bool {
	return slices.ContainsFunc(e.changes.Replaced, func(r state.Reservation) bool { return r.Workload == id })
}

// quarantineScope has the workloads of a quota wait.
func (e *examination) quarantineScope(r store.Refusal) state.Quarantined {
	a := state.Quarantined{Scope: r.Scope, Level: state.QuarantineHeld, Why: r.Cause.Error()}
	if before := e.known[keyOf(a)]; recent(before, e.now) {
		a.Tries = before.Tries
	}
	a.Tries++
	a.Until = e.later(a.Tries)
	return a
}

// admissible reports whether a workload whose admission was refused need not be at fault, so that
// it waits and is tried again. Where a guard refused, the decision rests on something else than
// the ledger, which the next term reads. Where the charges were refused, so are those of others.
// What passes by waiting may still pass.
func admissible(r store.Refusal) bool {
	return r.Part == store.PartCharges || r.Part == store.PartPlaces && (store.ViolatesGuard(r.Cause) || store.Passing(r.Cause) != "")
}

// What may pass is tried again after firstHeld, then after twice
// as long each time, at most after longestHeld.
const (
	firstHeld   = 15 * time.Second
	longestHeld = 30 * time.Minute
)

func (e *examination) later(tries int) time.Time { return e.now.Add(heldFor(tries)).UTC() }

func heldFor(tries int) time.Duration { return min(longestHeld, firstHeld<<min(tries-1, 10)) }
