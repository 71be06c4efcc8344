package bus_test

import (
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
)

// A note stays when the streams are brought to their configuration, which does not
// have it.
func TestANoteStays(t *testing.T) {
	t.Parallel()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: "test", Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if note, err := b.Note(t.Context(), "color"); err != nil || note != "" {
		t.Errorf("without streams the note is %q, %v", note, err)
	}
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"red", "blue"} {
		if err := b.SetNote(t.Context(), "color", value); err != nil {
			t.Fatal(err)
		}
		if _, err := b.ConfigureStreams(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.EnsureStreams(t.Context()); err != nil { // as other services do
			t.Errorf("with a note: %v", err)
		}
		if note, err := b.Note(t.Context(), "color"); err != nil || note != value {
			t.Errorf("the note is %q, %v, want %q", note, err, value)
		}
	}
}
