package tally_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/testkit/tally"
)

func TestNotesAreReadAsAdded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tally")
	t.Setenv(tally.EnvFile, file)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want := []tally.Note{{tally.Postgres, tally.Shared, dir}, {tally.NATS, tally.Own, dir}}
	for _, note := range want {
		if err := tally.Add(note.Kind, note.Place); err != nil {
			t.Fatal(err)
		}
	}
	notes, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer notes.Close()
	got, err := tally.Read(notes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-added +read):\n%s", diff)
	}
}

func TestALineThatIsNoNoteIsNamed(t *testing.T) {
	_, err := tally.Read(strings.NewReader("postgres\tshared\t/p\nnats shared\n"))
	if err == nil || !strings.Contains(err.Error(), `line 2 of the tally is "nats shared"`) {
		t.Errorf("the error is %v", err)
	}
}
