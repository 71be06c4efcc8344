package event_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
)

// FuzzDecode: whatever arrives, it is a payload or a named error; and a payload
// is the same after it has been sent on.
func FuzzDecode(f *testing.F) {
	examples, err := filepath.Glob("../../../docs/schemas/examples/*.json")
	if err != nil || len(examples) == 0 {
		f.Fatalf("%d examples, %v", len(examples), err)
	}
	for _, name := range examples {
		example, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(example)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		envelope, err := event.Parse(data)
		if err != nil {
			if !errors.Is(err, event.ErrMalformed) {
				t.Fatalf("error %v", err)
			}
			return
		}
		payload, err := event.Decode(envelope)
		if err != nil {
			if !errors.Is(err, event.ErrMalformed) && !errors.Is(err, event.ErrUnknownType) {
				t.Fatalf("error %v", err)
			}
			return
		}
		sent, err := event.New(envelope.ID, envelope.Source, envelope.Time, payload)
		if err != nil {
			t.Fatalf("what was read cannot be sent on: %v", err)
		}
		encoded, err := sent.Encode()
		if err != nil {
			return // a time that JSON cannot write, or the like
		}
		received, err := event.Parse(encoded)
		if err != nil {
			t.Fatalf("what was sent on is not read: %v\n%s", err, encoded)
		}
		again, err := event.Decode(received)
		if err != nil {
			t.Fatalf("what was sent on is not read: %v\n%s", err, encoded)
		}
		// Of a zero time there are several values that are written alike.
		once, err := event.New("id", "source", envelope.Time, payload)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := event.New("id", "source", envelope.Time, again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(once.Data), string(twice.Data)); diff != "" {
			t.Fatalf("sent on, it is another:\n%s", diff)
		}
	})
}
