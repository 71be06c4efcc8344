package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Verdict says what a commit failed for, when the database refused what was in it.
type Verdict struct {
	// Aside are the workloads and nodes to keep out of decisions from now on.
	Aside []book.Aside
	// Rejected are submissions that cannot be stored, Dropped other messages that
	// carry what cannot be stored. None of them may be taken in again.
	Rejected, Dropped []Refused
	// Unrecorded: decisions cannot be recorded.
	Unrecorded bool
}

// Refused is a message with the reason.
type Refused struct {
	bus.Delivery
	Cause error
}

// Empty reports whether nothing is to blame.
func (v Verdict) Empty() bool {
	return len(v.Aside) == 0 && len(v.Rejected) == 0 && len(v.Dropped) == 0 && !v.Unrecorded
}

// others returns the messages of a batch that are to come again.
func (v Verdict) others(batch []bus.Delivery) []bus.Delivery {
	gone := map[message]bool{}
	for _, r := range v.Rejected {
		gone[messageOf(r.Delivery)] = true
	}
	return slices.DeleteFunc(slices.Clone(batch), func(d bus.Delivery) bool { return gone[messageOf(d)] })
}

// Blame finds what of a decision the database refuses, whatever the SQLSTATE;
// known is what is set aside already. It is for a decision whose Write has failed,
// when the book is not used any more. An empty verdict means that nothing of the
// decision is to blame, or that all of it can be stored now.
func (d *Desk) Blame(ctx context.Context, decision *Decision, cause error, known Asides, now time.Time) (Verdict, error) {
	if !store.Suspect(cause) {
		return Verdict{}, nil
	}
	refused, err := d.Ledger.Probe(ctx, decision.Changes, decision.record)
	if err != nil {
		return Verdict{}, err
	}
	j := &judge{
		changes: decision.Changes, submitted: map[workload.ID]bus.Delivery{}, about: map[workload.ID][]bus.Delivery{},
		known: known, now: now, judged: map[workload.ID]bool{},
	}
	for _, message := range decision.Batch {
		j.hear(message)
	}
	for _, r := range refused {
		j.blame(r)
	}
	return j.verdict, nil
}

// judge decides what becomes of what is refused.
type judge struct {
	changes   book.Changes
	submitted map[workload.ID]bus.Delivery
	about     map[workload.ID][]bus.Delivery // other messages
	known     Asides
	now       time.Time
	judged    map[workload.ID]bool
	verdict   Verdict
}

// hear notes which workload a message of the batch is about.
func (j *judge) hear(d bus.Delivery) {
	_, payload, err := d.Event()
	if err != nil {
		return // it was given up
	}
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		j.submitted[p.Workload.ID] = d
	case *event.WorkloadCancel:
		j.about[p.Workload] = append(j.about[p.Workload], d)
	case *event.WorkloadRelease:
		j.about[p.Workload] = append(j.about[p.Workload], d)
	case *event.GangStatus:
		j.about[p.Workload] = append(j.about[p.Workload], d)
	}
}

func (j *judge) blame(r store.Refusal) {
	switch {
	case r.Part == store.PartRecord:
		j.verdict.Unrecorded = true
		return
	case r.Workload == "":
		j.verdict.Aside = append(j.verdict.Aside, book.Aside{Node: r.Node, Tries: 1, Why: r.Cause.Error()})
		return
	case j.judged[r.Workload]:
		return
	}
	j.judged[r.Workload] = true
	isNew := slices.ContainsFunc(j.changes.Added, func(a book.Added) bool { return a.ID == r.Workload })
	later := r.Part == store.PartPlaces && store.ViolatesGuard(r.Cause) // it can be stored as one that waits
	submission, heard := j.submitted[r.Workload]
	switch {
	case isNew && heard && !later:
		j.verdict.Rejected = append(j.verdict.Rejected, Refused{submission, r.Cause})
	case !isNew && errors.Is(store.Explained(r.Cause), store.ErrBadData) && len(j.about[r.Workload]) > 0:
		for _, d := range j.about[r.Workload] {
			j.verdict.Dropped = append(j.verdict.Dropped, Refused{d, r.Cause})
		}
	default:
		j.verdict.Aside = append(j.verdict.Aside, j.aside(r))
	}
}

// aside says how far a workload is set aside: as little as lets all others go on,
// and further when that does not do.
func (j *judge) aside(r store.Refusal) book.Aside {
	before := j.known[string(r.Workload)]
	a := book.Aside{Workload: r.Workload, Level: book.AsideFailed, Tries: before.Tries + 1, Why: r.Cause.Error()}
	attempt := func(rows []book.Reservation) int {
		if i := slices.IndexFunc(rows, func(row book.Reservation) bool { return row.Workload == r.Workload }); i >= 0 {
			return rows[i].Attempt
		}
		return 0
	}
	switch admitted, moved := attempt(j.changes.Reserved), attempt(j.changes.Moved); {
	case r.Part == store.PartPlaces && admitted > 0 && store.ViolatesGuard(r.Cause):
		// The decision rests on something else than the ledger, which the next term
		// reads: the workload itself need not be at fault.
		a.Level, a.Until = book.AsideHeld, j.now.Add(heldFor(a.Tries)).UTC()
		return a
	case r.Part == store.PartPlaces && moved > 0:
		a.Level, a.Attempt = book.AsideHeld, moved
	case r.Part == store.PartEnd, r.Part == store.PartGiveBack:
		a.Level = book.AsideKept
	}
	if before.Level >= a.Level && before.Attempt == a.Attempt {
		a.Level, a.Attempt = min(before.Level+1, book.AsideKept), 0
	}
	return a
}

// An admission that a guard refused is tried again after firstHeld, then after twice
// as long each time, at most after longestHeld.
const (
	firstHeld   = 15 * time.Second
	longestHeld = 30 * time.Minute
)

func heldFor(tries int) time.Duration { return min(longestHeld, firstHeld<<min(tries-1, 10)) }
