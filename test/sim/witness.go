package sim

import (
	"encoding/json"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	queuemanager "muster.dev/muster/services/queue-manager/simhooks"
)

// witness decides again what a term decides, from what the term writes down and
// from nothing else, as `muster replay` does: G8.
type witness struct {
	*ledger
	term   *term
	state  *state.State
	number int64
	// apart: the term was over before it decided anything. What it decides rests on a
	// older ledger, and cannot be committed.
	apart bool
}

// Prepare implements engine.Store: it looks at the record before the
// transaction is made of it.
func (w *witness) Prepare(changes state.Changes, record queuemanager.Record) (queuemanager.Transaction, error) {
	if record.Inputs != nil {
		w.replay(changes, record)
	} else if !changes.Empty() {
		w.w.breach("G8", "version %d has no record", changes.Version)
	}
	written, err := w.ledger.prepare(changes, record)
	if err != nil {
		return nil, err
	}
	written.remember, written.kept = w.term.m.remembered(w.term.epoch), w.term.step.State.IsFrozen
	written.learned = w.learned()
	for _, r := range (&judgement{c: changes}).records() {
		if shape := shapeOf(r); !written.remember[shape] {
			written.shapes = append(written.shapes, shape)
		}
	}
	return written.write, nil
}

func (w *witness) replay(changes state.Changes, record queuemanager.Record) {
	inputs, err := decisionlog.Inputs(record.Inputs)
	if err != nil {
		w.w.breach("G8", "record %d of epoch %d cannot be read: %v", record.Number, changes.Epoch, err)
		return
	}
	if record.Number != w.number {
		w.w.breach("G8", "record %d of epoch %d comes where %d should", record.Number, changes.Epoch, w.number)
	}
	w.number++
	if w.apart = w.apart || w.state == nil && (w.term.epoch != w.w.disk.epoch || w.term.era != w.w.disk.era); w.apart {
		return
	}
	if w.state == nil {
		if inputs = w.begin(inputs); w.state == nil {
			return
		}
	}
	for _, in := range inputs {
		if err := decisionlog.Apply(w.state, in); err != nil {
			w.w.breach("G8", "record %d of epoch %d cannot be done again: %v", record.Number, changes.Epoch, err)
			return
		}
	}
	w.compare(changes, w.state.Flush())
	w.w.check.decisions++
}

// begin begins on what the commits of all terms come to, which must be what is
// stored.
func (w *witness) begin(inputs []decisionlog.Input) []decisionlog.Input {
	if len(inputs) == 0 || inputs[0].Term == nil {
		w.w.breach("G8", "epoch %d has no begin record", w.term.epoch)
		return nil
	}
	begin := *inputs[0].Term
	if begin.Stored.Version < w.w.disk.replayed.Version || begin.Stored.Version > w.w.disk.recordedTo() {
		w.w.breach("G8", "epoch %d begins on version %d, and the records before it end at %d", w.term.epoch, begin.Stored.Version, w.w.disk.replayed.Version)
		return nil
	}
	w.state = w.w.disk.replayed.State(begin)
	return inputs[1:]
}

// compare holds two outcomes of the same inputs against each other: as they are
// recorded, which says where they differ, and in all they have.
func (w *witness) compare(changes, again state.Changes) {
	if line := decisionlog.Compare(decisionlog.Outcome(changes), decisionlog.Outcome(again)); line != nil {
		w.w.breach("G8", "version %d of epoch %d comes out otherwise, in line %d:\n%s\n%s", changes.Version, changes.Epoch, line.Line,
			line.Recorded, line.Replayed)
		return
	}
	first, _ := json.Marshal(changes) // plain data can always be encoded
	second, _ := json.Marshal(again)
	if string(first) != string(second) {
		w.w.breach("G8", "the same input gives two decisions:\n%s\n%s", first, second)
	}
}
