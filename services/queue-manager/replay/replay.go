// Package replay decides again what was decided, on the recorded inputs and with the same
// code as the leader, and compares the outcomes.
//
//	checkpoint --> state --> recorded inputs applied --> outcome == recorded outcome?
//
// It only reads. It is not for repairing a ledger.
package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// ErrNoCheckpoint is returned when nothing is kept that a replay could begin with.
var ErrNoCheckpoint = errors.New("no checkpoint is kept to replay decisions from")

// Report is what a replay found.
type Report struct {
	// Checkpoints, Terms and Decisions that were replayed.
	Checkpoints int `json:"bases"`
	Terms       int `json:"terms"`
	Decisions   int `json:"decisions"`
	Inputs      int `json:"inputs"`
	// From and To are the versions of the ledger before the first and after the
	// last of them.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Releases of Muster that decided them, in order.
	Releases []string `json:"releases"`
	// Difference is the first one; nil when all came out the same.
	Difference *Difference `json:"difference,omitempty"`
}

// Difference is a decision that does not come out as it was recorded, or a record
// that cannot be right.
type Difference struct {
	Epoch   int64     `json:"epoch"`
	Number  int64     `json:"number"`
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	// What is wrong, in words.
	What string `json:"what"`
	// Line of the outcome, when it is that.
	Line *decisionlog.Difference `json:"line,omitempty"`
}

// errDifferent ends the reading after the first difference.
var errDifferent = errors.New("a decision is different")

// Run replays what is kept in the ledger at the URL, from the last checkpoint before the
// given time on; from the first one that is kept for the zero time. It calls progress
// now and then.
func Run(ctx context.Context, databaseURL string, since time.Time, progress func(Report)) (Report, error) {
	if databaseURL == "" {
		return Report{}, errors.New("the database URL is missing")
	}
	s, err := store.OpenReader(ctx, databaseURL, store.DefaultTimeouts())
	if err != nil {
		return Report{}, err
	}
	defer s.Close()
	checkpoints, err := s.Checkpoints(ctx)
	if err != nil {
		return Report{}, err
	}
	if len(checkpoints) == 0 {
		return Report{}, ErrNoCheckpoint
	}
	first := 0
	for i, checkpoint := range checkpoints {
		if !checkpoint.At.After(since) {
			first = i
		}
	}
	r := &replayer{store: s, checkpoints: map[int64]store.Checkpoint{}}
	for _, checkpoint := range checkpoints[first:] {
		r.checkpoints[checkpoint.Epoch] = checkpoint
	}
	r.report.From = checkpoints[first].Version
	err = s.Decisions(ctx, checkpoints[first].Epoch, func(d store.Decision) error {
		err := r.next(ctx, d)
		if err == nil && r.report.Decisions%1000 == 0 {
			progress(r.report)
		}
		return err
	})
	if errors.Is(err, errDifferent) || errors.Is(err, store.ErrDamaged) && r.damaged(err) {
		err = nil
	}
	return r.report, err
}

type replayer struct {
	store       *store.Store
	checkpoints map[int64]store.Checkpoint
	ledger      *decisionlog.Replica
	state       *state.State
	epoch       int64 // of the term that is replayed
	search      int   // its version of the bounds of searches
	number      int64 // of the decision that comes next in it
	report      Report
}

// damaged notes bytes that cannot be read.
func (r *replayer) damaged(err error) bool {
	r.report.Difference = &Difference{Epoch: r.epoch, Number: r.number, What: err.Error()}
	return true
}

func (r *replayer) differs(d store.Decision, format string, args ...any) error {
	r.report.Difference = &Difference{Epoch: d.Epoch, Number: d.Number, Version: d.Version, At: d.At, What: fmt.Sprintf(format, args...)}
	return errDifferent
}

// next replays one decision.
func (r *replayer) next(ctx context.Context, d store.Decision) error {
	inputs, err := decisionlog.Inputs(d.Inputs)
	if err != nil {
		return r.differs(d, "its inputs cannot be read: %v", err)
	}
	if d.Epoch != r.epoch || r.state == nil {
		if inputs, err = r.begin(ctx, d, inputs); err != nil {
			return err
		}
	}
	if d.Number != r.number {
		return r.differs(d, "decision %d of the epoch is missing", r.number)
	}
	r.number++
	for i, in := range inputs {
		if err := apply(r.state, in); err != nil {
			return r.differs(d, "input %d of %d: %v", i+1, len(inputs), err)
		}
	}
	changes := r.state.Flush()
	if line := decisionlog.Compare(d.Outcome, decisionlog.Outcome(changes)); line != nil {
		err := r.differs(d, "the outcome is another one%s", r.otherSearch())
		r.report.Difference.Line = line
		return err
	}
	if r.state.Version() != d.Version {
		return r.differs(d, "it makes version %d of the ledger", r.state.Version())
	}
	r.ledger.Commit(changes)
	r.ledger.Version = d.Version // which other settings alone raise, too
	r.report.Decisions++
	r.report.Inputs += len(inputs)
	r.report.To = d.Version
	return nil
}

// otherSearch reports, when the term was decided under other bounds of searches than
// these, that this alone may make an outcome another one.
func (r *replayer) otherSearch() string {
	if r.search == admission.SearchVersion {
		return ""
	}
	return fmt.Sprintf("; the term was decided under version %d of the search budget and is replayed under version %d, so gangs that are hard to place may differ",
		r.search, admission.SearchVersion)
}

// apply keeps a panic, which recorded inputs that were changed may cause, from
// ending the replay without a word.
func apply(s *state.State, in decisionlog.Input) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it cannot be applied: %v", cause)
		}
	}()
	return decisionlog.Apply(s, in)
}

// begin begins a term, on what the ledger had after the last one or on a checkpoint of
// its own, and returns the inputs after it.
func (r *replayer) begin(ctx context.Context, d store.Decision, inputs []decisionlog.Input) ([]decisionlog.Input, error) {
	if d.Number != 0 || len(inputs) == 0 || inputs[0].Kind != decisionlog.Begin || inputs[0].Term == nil {
		return nil, r.differs(d, "the epoch has no begin record; earlier decisions are missing")
	}
	term := *inputs[0].Term
	if term.Epoch != d.Epoch {
		return nil, r.differs(d, "its begin record is of epoch %d", term.Epoch)
	}
	if checkpoint, ok := r.checkpoints[d.Epoch]; ok && (r.ledger == nil || r.ledger.Version != term.Stored.Version) {
		ledger, err := r.store.ReadCheckpoint(ctx, checkpoint)
		if err != nil {
			return nil, err
		}
		r.ledger = ledger
		r.report.Checkpoints++
	}
	if r.ledger == nil || r.ledger.Version != term.Stored.Version {
		last := int64(0)
		if r.ledger != nil {
			last = r.ledger.Version
		}
		return nil, r.differs(d, "the epoch begins on version %d of the ledger, but what is recorded before ends at %d", term.Stored.Version, last)
	}
	var err error
	if r.state, err = open(r.ledger, term); err != nil {
		return nil, r.differs(d, "its begin record: %v", err)
	}
	r.epoch, r.number, r.search = d.Epoch, 0, term.Search
	r.report.Terms++
	if n := len(r.report.Releases); n == 0 || r.report.Releases[n-1] != term.Release {
		r.report.Releases = append(r.report.Releases, term.Release)
	}
	return inputs[1:], nil
}

func open(l *decisionlog.Replica, term decisionlog.Term) (s *state.State, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it cannot be applied: %v", cause)
		}
	}()
	return l.State(term), nil
}
