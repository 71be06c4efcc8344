package event_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
)

// TestMarshal: the short way writes what the long one does, byte for byte: who cuts
// the data out of an envelope relies on its place.
func TestMarshal(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob("../../../docs/schemas/examples/*.json")
	if err != nil || len(examples) < len(event.Types()) {
		t.Fatalf("%d examples of %d types, %v", len(examples), len(event.Types()), err)
	}
	for _, name := range examples {
		example, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		envelope, err := event.Parse(example)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		payload, err := event.Decode(envelope)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, traceparent := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
			long, err := event.New("<id>", "test & source", envelope.Time, payload)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			long.Traceparent = traceparent
			want, err := long.Encode()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := event.Marshal("<id>", "test & source", envelope.Time, traceparent, payload)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s: %v, differs (-Encode +Marshal):\n%s", name, err, cmp.Diff(string(want), string(got)))
			}
		}
	}
}
