package decisionlog_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
)

func TestInputsComeBackAsTheyWereNoted(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	noted := []decisionlog.Input{
		{Kind: decisionlog.Event, At: at, Message: []byte("two\nlines"), Known: &state.Known{Digest: "d", Phase: "failed"}},
		{Kind: decisionlog.Event, At: at, Message: []byte("read again"), Stored: at.Add(-time.Hour)},
		{Kind: decisionlog.Tick, At: at.Add(1), Grace: time.Minute},
		{Kind: decisionlog.ResendCommands, At: at, Subjects: []string{"a", "b"}},
		{Kind: decisionlog.Undeliverable, At: at, Workload: "w", Reason: "too large"},
	}
	var r decisionlog.Recorder
	for _, in := range noted {
		r.Note(in)
	}
	number, recorded := r.Flush()
	if number != 0 || r.Size() != 0 {
		t.Errorf("taken as number %d, %d bytes are left", number, r.Size())
	}
	read, err := decisionlog.Inputs(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(noted, read); diff != "" {
		t.Errorf("noted (-) and read (+):\n%s", diff)
	}
	for cut := range recorded {
		if got, err := decisionlog.Inputs(recorded[:cut]); err == nil && len(got) == len(noted) {
			t.Errorf("the first %d of %d bytes are read as everything", cut, len(recorded))
		}
	}
}

func TestTheFirstDifferenceIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		recorded, replayed string
		want               *decisionlog.Difference
	}{
		"none":    {"a\nb\n", "a\nb\n", nil},
		"a line":  {"a\nb\nc\n", "a\nx\nc\n", &decisionlog.Difference{Line: 2, Recorded: "b", Replayed: "x"}},
		"more":    {"a\n", "a\nb\n", &decisionlog.Difference{Line: 2, Replayed: "b"}},
		"less":    {"a\nb\n", "a\n", &decisionlog.Difference{Line: 2, Recorded: "b"}},
		"nothing": {"", "a\n", &decisionlog.Difference{Line: 1, Replayed: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, decisionlog.Compare([]byte(c.recorded), []byte(c.replayed))); diff != "" {
				t.Errorf("%s: want (-), got (+):\n%s", name, diff)
			}
		})
	}
}

// Whatever bytes are kept, reading them ends with inputs or an error.
func FuzzInputs(f *testing.F) {
	var r decisionlog.Recorder
	r.Note(decisionlog.Input{Kind: decisionlog.Event, Message: []byte("message")})
	_, recorded := r.Flush()
	f.Add(recorded)
	f.Add([]byte("{}\n99999999999999999999\n"))
	f.Add([]byte("{}\n-1\n"))
	f.Fuzz(func(t *testing.T, recorded []byte) {
		inputs, err := decisionlog.Inputs(recorded)
		if err != nil {
			return
		}
		var again decisionlog.Recorder
		for _, in := range inputs {
			again.Note(in)
		}
		_, written := again.Flush()
		second, err := decisionlog.Inputs(written)
		if err != nil || len(second) != len(inputs) || len(inputs) > 0 && !bytes.Equal(second[0].Message, inputs[0].Message) {
			t.Errorf("%d inputs written and read again: %d, %v", len(inputs), len(second), err)
		}
	})
}
