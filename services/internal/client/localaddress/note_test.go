package localaddress_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/services/internal/client/localaddress"
)

func TestNote(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state", "dev.json")
	if _, err := localaddress.Read(file); !errors.Is(err, localaddress.ErrNone) {
		t.Errorf("before: %v, want ErrNone", err)
	}
	note, err := localaddress.Reserve(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := localaddress.Reserve(file); !errors.Is(err, localaddress.ErrTaken) {
		t.Errorf("a second one: %v, want ErrTaken", err)
	}
	if _, err := localaddress.Read(file); !errors.Is(err, localaddress.ErrNone) || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("while it starts: %v, want ErrNone", err)
	}
	want := localaddress.Stack{NATSURL: "nats://127.0.0.1:1", PID: 7, Started: time.Unix(1_700_000_000, 0).UTC()}
	for range 2 { // a shorter text must not leave the end of a longer one
		if err := note.Write(want); err != nil {
			t.Fatal(err)
		}
		got, err := localaddress.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the note (-want +got):\n%s", diff)
		}
		want.PID, want.NATSURL = 1, ""
	}
	note.Remove()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Remove there is still a file: %v", err)
	}
	again, err := localaddress.Reserve(file)
	if err != nil {
		t.Fatalf("after Remove: %v", err)
	}
	again.Remove()
}

func TestNoteOfTheDead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dev.json")
	if err := os.WriteFile(file, []byte(`{"natsURL":"nats://127.0.0.1:1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := localaddress.Read(file); !errors.Is(err, localaddress.ErrNone) {
		t.Errorf("read: %v, want ErrNone", err)
	}
	note, err := localaddress.Reserve(file)
	if err != nil {
		t.Fatalf("a dead note keeps the place: %v", err)
	}
	note.Remove()
}
