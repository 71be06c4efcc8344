package journal_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/journal"
)

func TestInputsComeBackAsTheyWereNoted(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	noted := []journal.Input{
		{Kind: journal.Event, At: at, Message: []byte("two\nlines"), Known: &book.Known{Digest: "d", Phase: "failed"}},
		{Kind: journal.Tick, At: at.Add(1), Grace: time.Minute},
		{Kind: journal.Repeat, At: at, Subjects: []string{"a", "b"}},
		{Kind: journal.Undeliverable, At: at, Workload: "w", Reason: "too large"},
	}
	var r journal.Recorder
	for _, in := range noted {
		r.Note(in)
	}
	number, recorded := r.Take()
	if number != 0 || r.Size() != 0 {
		t.Errorf("taken as number %d, %d bytes are left", number, r.Size())
	}
	read, err := journal.Inputs(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(noted, read); diff != "" {
		t.Errorf("noted (-) and read (+):\n%s", diff)
	}
	for cut := range recorded {
		if got, err := journal.Inputs(recorded[:cut]); err == nil && len(got) == len(noted) {
			t.Errorf("the first %d of %d bytes are read as everything", cut, len(recorded))
		}
	}
}

func TestTheFirstDifferenceIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		recorded, replayed string
		want               *journal.Difference
	}{
		"none":    {"a\nb\n", "a\nb\n", nil},
		"a line":  {"a\nb\nc\n", "a\nx\nc\n", &journal.Difference{Line: 2, Recorded: "b", Replayed: "x"}},
		"more":    {"a\n", "a\nb\n", &journal.Difference{Line: 2, Replayed: "b"}},
		"less":    {"a\nb\n", "a\n", &journal.Difference{Line: 2, Recorded: "b"}},
		"nothing": {"", "a\n", &journal.Difference{Line: 1, Replayed: "a"}},
	} {
		if diff := cmp.Diff(c.want, journal.Compare([]byte(c.recorded), []byte(c.replayed))); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", name, diff)
		}
	}
}

// Whatever bytes are kept, reading them ends with inputs or an error.
func FuzzInputs(f *testing.F) {
	var r journal.Recorder
	r.Note(journal.Input{Kind: journal.Event, Message: []byte("message")})
	_, recorded := r.Take()
	f.Add(recorded)
	f.Add([]byte("{}\n99999999999999999999\n"))
	f.Add([]byte("{}\n-1\n"))
	f.Fuzz(func(t *testing.T, recorded []byte) {
		inputs, err := journal.Inputs(recorded)
		if err != nil {
			return
		}
		var again journal.Recorder
		for _, in := range inputs {
			again.Note(in)
		}
		_, written := again.Take()
		second, err := journal.Inputs(written)
		if err != nil || len(second) != len(inputs) || len(inputs) > 0 && !bytes.Equal(second[0].Message, inputs[0].Message) {
			t.Errorf("%d inputs written and read again: %d, %v", len(inputs), len(second), err)
		}
	})
}
