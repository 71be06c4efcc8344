package sim

import (
	"encoding/json"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/journal"
	queuemanager "muster.dev/muster/services/queue-manager/step"
)

// witness decides again what a term decides, from what the term writes down and
// from nothing else, as `muster replay` does: G8.
type witness struct {
	*ledger
	term   *term
	book   *book.Book
	number int64
	// apart: the term was over before it decided anything. What it decides rests on a
	// ledger of before, and cannot be committed.
	apart bool
}

// Prepare implements queuemanager.Ledger: it looks at the record before the
// transaction is made of it.
func (t *witness) Prepare(changes book.Changes, record queuemanager.Record) (queuemanager.Transaction, error) {
	if record.Inputs != nil {
		t.replay(changes, record)
	} else if !changes.Empty() {
		t.w.breach("G8", "version %d has no record", changes.Version)
	}
	prepared, err := t.ledger.Prepare(changes, record)
	if err != nil {
		return nil, err
	}
	written := prepared.(*transaction)
	written.remember = t.term.m.remembered(t.term.epoch)
	for _, r := range (&judgement{c: changes}).records() {
		if shape := shapeOf(r); !written.remember[shape] {
			written.shapes = append(written.shapes, shape)
		}
	}
	return written, nil
}

func (t *witness) replay(changes book.Changes, record queuemanager.Record) {
	inputs, err := journal.Inputs(record.Inputs)
	if err != nil {
		t.w.breach("G8", "record %d of epoch %d cannot be read: %v", record.Number, changes.Epoch, err)
		return
	}
	if record.Number != t.number {
		t.w.breach("G8", "record %d of epoch %d comes where %d should", record.Number, changes.Epoch, t.number)
	}
	t.number++
	if t.apart = t.apart || t.book == nil && t.term.epoch != t.w.disk.epoch; t.apart {
		return
	}
	if t.book == nil {
		if inputs = t.begin(inputs); t.book == nil {
			return
		}
	}
	for _, in := range inputs {
		if err := journal.Apply(t.book, in); err != nil {
			t.w.breach("G8", "record %d of epoch %d cannot be done again: %v", record.Number, changes.Epoch, err)
			return
		}
	}
	t.compare(changes, t.book.Take())
	t.w.check.decisions++
}

// begin begins on what the commits of all terms come to, which must be what is
// stored.
func (t *witness) begin(inputs []journal.Input) []journal.Input {
	if len(inputs) == 0 || inputs[0].Term == nil {
		t.w.breach("G8", "the records of epoch %d do not begin with its begin", t.term.epoch)
		return nil
	}
	begin := *inputs[0].Term
	if begin.Stored.Version != t.w.disk.replayed.Version {
		t.w.breach("G8", "epoch %d begins on version %d, and the records before it end at %d", t.term.epoch, begin.Stored.Version, t.w.disk.replayed.Version)
		return nil
	}
	t.book = t.w.disk.replayed.Book(begin)
	return inputs[1:]
}

// compare holds two outcomes of the same inputs against each other: as they are
// recorded, which says where they differ, and in all they have.
func (t *witness) compare(changes, again book.Changes) {
	if line := journal.Compare(journal.Outcome(changes), journal.Outcome(again)); line != nil {
		t.w.breach("G8", "version %d of epoch %d comes out otherwise, in line %d:\n%s\n%s", changes.Version, changes.Epoch, line.Line,
			line.Recorded, line.Replayed)
		return
	}
	first, _ := json.Marshal(changes) // plain data can always be encoded
	second, _ := json.Marshal(again)
	if string(first) != string(second) {
		t.w.breach("G8", "the same input gives two decisions:\n%s\n%s", first, second)
	}
}
