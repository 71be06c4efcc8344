package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Classes of differences: the first line in which two outcomes are not the same.
const (
	DiffPhase      = "phase"      // a workload is in another phase: it is admitted, or evicted, in one only
	DiffReason     = "reason"     // a workload has another reason, or other times
	DiffPlaces     = "places"     // a gang has other nodes
	DiffWorkload   = "workload"   // another workload changes, or one more
	DiffOther      = "other"      // nodes, steps and messages
	DiffUnreadable = "unreadable" // the decision cannot be repeated: the record is of a later release, or damaged
)

// Classes lists them.
func Classes() []string {
	return []string{DiffPhase, DiffReason, DiffPlaces, DiffWorkload, DiffOther, DiffUnreadable}
}

// Class returns the class of a difference.
func (d *Difference) Class() string {
	if d.Line == nil {
		return DiffUnreadable
	}
	recorded, replayed := lineOf(d.Line.Recorded), lineOf(d.Line.Replayed)
	switch a, b := recorded.Workload, replayed.Workload; {
	case a != nil && b != nil && a.ID == b.ID && a.Phase != b.Phase:
		return DiffPhase
	case a != nil && b != nil && a.ID == b.ID:
		return DiffReason
	case a != nil || b != nil:
		return DiffWorkload
	case recorded.Places != nil || replayed.Places != nil:
		return DiffPlaces
	}
	return DiffOther
}

// outcomeLine is as much of a line of an outcome as its class needs.
type outcomeLine struct {
	Workload *struct {
		ID    workload.ID    `json:"id"`
		Phase workload.Phase `json:"phase"`
	} `json:"workload"`
	Places json.RawMessage `json:"places"`
}

func lineOf(text string) (line outcomeLine) {
	_ = json.Unmarshal([]byte(text), &line) // one that cannot be read shows nothing of workloads
	return line
}

// Watch has what a shadow finds.
type Watch struct {
	// Decided is called for each decision that came out the same.
	Decided func(at time.Time)
	// Skipped is called for each decision that was not repeated, because the state of the
	// shadow was not that of the leader.
	Skipped func()
	// Differs is called for each one that came out differently. resumed means that the shadow
	// had begun in the middle of the term, where a fresh state may decide differently, too.
	Differs func(d Difference, resumed bool)
}

// Shadow repeats decisions while they are recorded, with the code of this release, from the last
// checkpoint on. After a difference it reads the ledger and goes on from there. It returns when
// ctx ends or Postgres cannot be read, and writes nothing: Postgres refuses each write of its
// sessions.
func Shadow(ctx context.Context, databaseURL string, every time.Duration, found Watch) error {
	s, err := store.OpenReadOnly(ctx, databaseURL, store.DefaultTimeouts())
	if err != nil {
		return err
	}
	defer s.Close()
	f := &shadow{replayer: replayer{store: s, checkpoints: map[int64]store.Checkpoint{}}, found: found}
	epoch, number := int64(0), int64(-1)
	for {
		checkpoints, err := s.Checkpoints(ctx)
		if err != nil {
			return err
		}
		for _, checkpoint := range checkpoints {
			f.checkpoints[checkpoint.Epoch] = checkpoint
		}
		if n := len(checkpoints); epoch == 0 && n > 0 {
			epoch = checkpoints[n-1].Epoch
		}
		if epoch > 0 {
			err = s.DecisionsAfter(ctx, epoch, number, func(d store.Decision) error {
				epoch, number = d.Epoch, d.Number
				return f.repeat(ctx, d)
			})
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// reloadEach is the least time between two readings of the ledger, which may be large.
const reloadEach = time.Minute

// shadow is a replayer that goes on after differences.
type shadow struct {
	replayer
	found Watch
	term  *decisionlog.Term // that of the decisions
	// lost: the state is not that of the leader. resumed: it was read in the middle of the term.
	lost, resumed bool
	// fresh: the ledger was read and the state is not made of it yet.
	fresh  bool
	stored state.Stored
	read   time.Time
}

// repeat applies a decision again, or skips it.
func (f *shadow) repeat(ctx context.Context, d store.Decision) error {
	begins, err := f.begins(d)
	if err != nil {
		return f.differ(Difference{Epoch: d.Epoch, Number: d.Number, Version: d.Version, At: d.At, What: err.Error()})
	}
	if f.lost && (!begins || !f.canBegin(d.Epoch)) {
		if ready, err := f.resume(ctx, d); err != nil || !ready {
			f.found.Skipped()
			return err
		}
	} else if begins {
		f.lost, f.resumed, f.fresh = false, false, false
	}
	err = f.next(ctx, d)
	switch {
	case errors.Is(err, errDifferent):
		return f.differ(*f.report.Difference)
	case err != nil:
		return err
	}
	f.found.Decided(d.At)
	return nil
}

// differ reports a difference, after which the state is not that of the leader any more.
func (f *shadow) differ(d Difference) error {
	f.report.Difference, f.state, f.lost, f.fresh = nil, nil, true, false
	f.found.Differs(d, f.resumed)
	return nil
}

// begins reports whether a term begins with a decision, and keeps the term.
func (f *shadow) begins(d store.Decision) (bool, error) {
	if d.Number != 0 {
		return false, nil
	}
	inputs, err := decisionlog.Inputs(d.Inputs)
	if err != nil {
		return false, fmt.Errorf("its inputs cannot be read: %w", err)
	}
	if len(inputs) > 0 && inputs[0].Kind == decisionlog.Begin {
		f.term = inputs[0].Term
	}
	return true, nil
}

// canBegin reports whether a term can be followed from its beginning, although the shadow was lost.
func (f *shadow) canBegin(epoch int64) bool {
	if f.fresh && f.term != nil && f.term.Epoch == epoch && f.ledger.Version == f.term.Stored.Version {
		return true
	}
	_, kept := f.checkpoints[epoch]
	if kept {
		f.ledger = nil // the checkpoint has it
	}
	return kept
}

// resume reads the ledger as it is now, and reports whether a decision is behind that: the
// first one then goes on from a state that is made of it.
func (f *shadow) resume(ctx context.Context, d store.Decision) (ready bool, err error) {
	if f.term == nil || f.term.Epoch != d.Epoch {
		return false, nil // the beginning of its term was not seen
	}
	if !f.fresh {
		if time.Since(f.read) < reloadEach {
			return false, nil
		}
		if err := f.reload(ctx); err != nil {
			return false, err
		}
	}
	if d.Version <= f.ledger.Version {
		return false, nil
	}
	term := *f.term
	f.stored.MaxEvent = term.Stored.MaxEvent
	term.Stored = f.stored
	if f.state, err = open(f.ledger, term); err != nil {
		return false, f.differ(Difference{Epoch: d.Epoch, Number: d.Number, Version: d.Version, At: d.At, What: err.Error()})
	}
	f.epoch, f.number, f.search = d.Epoch, d.Number, term.Search
	f.lost, f.resumed, f.fresh = false, true, false
	return true, nil
}

// reload reads the ledger of this moment.
func (f *shadow) reload(ctx context.Context) error {
	f.read = time.Now()
	f.ledger = nil
	err := f.store.Read(ctx, func(stored state.Stored) {
		f.stored = stored
		f.ledger = decisionlog.NewReplica(stored.Version)
		for _, n := range stored.Nodes {
			f.ledger.RestoreNode(n)
		}
		f.stored.Nodes = nil
	}, func(w state.StoredWorkload) { f.ledger.Restore(w) })
	if err != nil {
		return fmt.Errorf("read the ledger to go on after a difference: %w", err)
	}
	f.fresh = true
	return nil
}
