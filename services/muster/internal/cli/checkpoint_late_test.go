package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestALateReportSaysWhen: a report that failed for long counts from the write, and the present is
// left to queue-manager's clock.
func TestALateReportSaysWhen(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after time.Duration
		want  time.Time
	}{
		"at once":             {time.Second, time.Time{}},
		"at the second look":  {2 * time.Second, time.Time{}},
		"after two hours":     {2 * time.Hour, start},
		"after half a minute": {30 * time.Second, start},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &written{since: start}
			if got := w.savedAt(start.Add(c.after), time.Second); !got.Equal(c.want) {
				t.Errorf("saved at %s, want %s", got, c.want)
			}
		})
	}
}

// TestAFileThatCannotBeLookedAtIsNotGone: once it can be again, what it had before is no new write.
func TestAFileThatCannotBeLookedAtIsNotGone(t *testing.T) {
	t.Parallel()
	below := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(below, []byte("epoch 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := writtenFile(below)
	if err != nil {
		t.Fatal(err)
	}
	before := w.seen
	w.path = filepath.Join(below, "latest") // below a file: no answer is that it is not there
	if due, err := w.due(time.Now()); due || err == nil || w.seen != before {
		t.Errorf("due %t, error %v, and it has %+v", due, err, w.seen)
	}
	w.path = below
	for range 2 {
		if due, err := w.due(time.Now()); due || err != nil {
			t.Errorf("due %t, error %v, of what was there before", due, err)
		}
	}
}
