package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/relay"
)

// keptMargin is how long before the last commit the submissions begin that are looked
// for in NATS first: clocks differ, and messages wait.
const keptMargin = 10 * time.Minute

// recoverBatch bounds the commands or submissions of one commit: each may have a
// manifest.
const recoverBatch = 100

// Lost is a workload that events reported and that the ledger and the streams of
// submissions do not have.
type Lost struct {
	workload.Record
	// Delivery is the last event of it.
	Delivery bus.Delivery
}

// Recovered is what was found of a database restored to an older state.
type Recovered struct {
	// Requeued are workloads that were lost and are queued again.
	Requeued []workload.ID
	// Unanswered were taken in before their turn: nothing was published of them, so they were
	// lost, or are still to come.
	Unanswered []workload.ID
	// Removed are the commands whose objects are removed: the ledger has no workload.
	Removed []*event.GangCommand
	// Lost were reported as queued and have to be submitted again.
	Lost []Lost
	// Ended had ended; only their record is lost.
	Ended []Lost
	// Unasked are live ones of which something has to be asked again.
	Unasked []Unasked
	// Withheld are live ones in quarantine: of what the streams have of them nothing is written,
	// and a later term has to look for it again.
	Withheld []workload.ID
}

// Recovery compares the streams with the ledger at the beginning of a term and brings both
// together. Step.NameLost comes after it.
type Recovery struct {
	Step *Step
	// Found is what the streams have and the ledger does not know.
	Found relay.Found
	// LastCommit is when the ledger was written last.
	LastCommit  time.Time
	Submissions SubmissionLog
	Now         time.Time
	// Save writes what was done to the state, and is given the messages that were
	// applied. A recovery may take more than one transaction.
	Save func(applied []bus.Delivery) error
	// MayBeOlder: the database was replaced, so that messages may be lost although the streams
	// have nothing that the ledger does not know: they were taken in and not published yet.
	MayBeOlder bool
	// Distrust has later terms send all commands again, while some are withheld in this one: the
	// streams have a command of the lost time in the place of each.
	Distrust func() error

	asked requests
}

// Run recovers what the ledger has lost.
func (r Recovery) Run(ctx context.Context) (recovered Recovered, err error) {
	if r.Found.Empty() && !r.MayBeOlder {
		return recovered, nil
	}
	r.asked = requests{}
	var live []workload.ID
	if !r.repeats() { // the term that found it first has done so
		if live, err = r.resubmit(ctx); err != nil {
			return recovered, fmt.Errorf("apply what NATS still has: %w", err)
		}
	}
	recovered.Requeued = live
	if r.Found.Empty() { // nothing shows that they are lost: they may only be on their way
		recovered.Requeued, recovered.Unanswered = nil, live
	}
	ahead, err := r.compare(ctx, &recovered)
	if err != nil {
		return recovered, err
	}
	if err := r.restore(ahead); err != nil {
		return recovered, err
	}
	if len(r.Found.Commands) > 0 && len(r.Step.State.Withheld(r.hasCommandOf())) > 0 {
		if err := r.Distrust(); err != nil {
			return recovered, fmt.Errorf("note that commands are withheld: %w", err)
		}
	}
	if recovered.Unasked, err = r.askAgain(ctx); err != nil {
		return recovered, fmt.Errorf("ask workloads for what was in effect: %w", err)
	}
	return recovered, nil
}

// hasCommandOf reports whether a subject is of a workload of which the streams have a command of the
// lost time, in whatever cluster.
func (r Recovery) hasCommandOf() func(subject string) bool {
	lost := map[workload.ID]bool{}
	for _, command := range r.Found.Commands {
		lost[command.Workload] = true
	}
	return func(subject string) bool { return lost[event.SubjectWorkload(subject)] }
}

// repeats reports whether the term only repeats what an earlier one has done, for workloads that were
// in quarantine then.
func (r Recovery) repeats() bool { return r.Found.Repeated && !r.Found.Empty() && !r.MayBeOlder }

// compare returns what the streams have beyond the ledger, and notes what is lost and
// what is removed.
func (r Recovery) compare(ctx context.Context, recovered *Recovered) (ahead state.Ahead, err error) {
	ids := make([]workload.ID, len(r.Found.LastEvents))
	for i, last := range r.Found.LastEvents {
		ids[i] = last.ID
	}
	known, err := r.Step.known(ctx, ids)
	if err != nil {
		return ahead, err
	}
	withheld := map[workload.ID]bool{}
	for _, last := range r.Found.LastEvents {
		if r.Step.State.IsFrozen(last.ID) {
			withheld[last.ID] = true
			continue
		}
		ahead.LastRecords = append(ahead.LastRecords, last.Record)
		if _, stored := known[last.ID]; stored || r.Step.State.Has(last.ID) {
			continue
		}
		if last.Phase.Final() {
			recovered.Ended = append(recovered.Ended, Lost{last.Record, last.Delivery})
		} else {
			recovered.Lost = append(recovered.Lost, Lost{last.Record, last.Delivery})
			ahead.Lost = append(ahead.Lost, last.Record)
		}
	}
	for _, c := range r.Found.Commands {
		if r.Step.State.IsFrozen(c.Workload) {
			withheld[c.Workload] = true
			continue
		}
		ahead.Commands = append(ahead.Commands, c)
		if c.State != event.Forgotten && !r.Step.State.Has(c.Workload) && !r.Step.State.Refused(c.Workload) {
			recovered.Removed = append(recovered.Removed, c)
		}
	}
	recovered.Withheld = slices.Sorted(maps.Keys(withheld))
	return ahead, nil
}

// restore has the state follow the streams in parts, each a commit of its own, and then ask
// checks again. Where the streams have nothing more there is one empty part: the state has to
// know that the ledger may be older, so that no number of the lost time is used again.
func (r Recovery) restore(ahead state.Ahead) error {
	split := parts(ahead, recoverBatch)
	if len(split) == 0 {
		split = []state.Ahead{{}}
	}
	for _, part := range split {
		if err := r.apply(part); err != nil {
			return err
		}
	}
	if r.repeats() {
		return nil
	}
	for part := range slices.Chunk(r.Step.State.Checked(), recoverBatch) {
		if err := r.apply(state.Ahead{AskAgain: true, Ask: part}); err != nil {
			return err
		}
	}
	return nil
}

// parts splits what the streams have into parts about a number of workloads each. All that
// is known of a workload is in one part, because its commands and its records are judged
// together.
func parts(ahead state.Ahead, size int) (split []state.Ahead) {
	of := map[workload.ID]int{}
	part := func(id workload.ID) *state.Ahead {
		if _, ok := of[id]; !ok {
			of[id] = len(of) / size
			if of[id] == len(split) {
				split = append(split, state.Ahead{})
			}
		}
		return &split[of[id]]
	}
	for _, record := range ahead.LastRecords {
		p := part(record.ID)
		p.LastRecords = append(p.LastRecords, record)
	}
	for _, record := range ahead.Lost {
		p := part(record.ID)
		p.Lost = append(p.Lost, record)
	}
	for _, command := range ahead.Commands {
		p := part(command.Workload)
		p.Commands = append(p.Commands, command)
	}
	return split
}

func (r Recovery) apply(ahead state.Ahead) error {
	r.Step.Do(decisionlog.Input{Kind: decisionlog.Ahead, At: r.Now, Ahead: &ahead})
	return r.Save(nil)
}
