package event_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
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

// TestWithManifest: a command that gets its manifest later is, byte for byte, the command
// that had it from the start.
func TestWithManifest(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	manifest := json.RawMessage(`{"kind":"RayJob","metadata":{"name":"a <b> & \"c\" }}"}}`)
	commands := map[string]event.GangCommand{
		"no field set": {},
		"absent":       {Workload: "w", Cluster: "c", State: event.Absent, Kind: workload.KindAppWrapper},
		"the last field is a list": {
			Workload: "w", Cluster: "c", State: event.Present, PodSets: []workload.PodSet{{Name: "head", Count: 1}},
		},
		"the last field is an object":                         {State: event.Present, Identity: &workload.Identity{User: "ada"}},
		"the last field is a text that ends like an envelope": {State: event.Present, Yield: "}}"},
	}
	for name, command := range commands {
		for _, traceparent := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
			t.Run(name+traceparent, func(t *testing.T) {
				t.Parallel()
				without, err := event.Marshal("id", event.QueueManagerSource, at, traceparent, &command)
				if err != nil {
					t.Fatal(err)
				}
				whole := command
				whole.Manifest = manifest
				want, err := event.Marshal("id", event.QueueManagerSource, at, traceparent, &whole)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(event.WithManifest(without, manifest))); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
