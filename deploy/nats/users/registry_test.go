package users

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAWriteThatFailedIsRepeated: a change that could not be written whole is not stored, so
// the same change, made again, is written whole.
func TestAWriteThatFailedIsRepeated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	accounts := filepath.Join(dir, AccountsFile)
	if err := os.Mkdir(accounts, 0o700); err != nil { // in the place of the file
		t.Fatal(err)
	}
	for _, fails := range []bool{true, false} {
		known, err := Read(dir)
		if err != nil || len(known.Clusters) > 0 {
			t.Fatalf("read clusters %v, %v; want none before the write succeeds", known.Clusters, err)
		}
		known.Add(io.Discard, []string{"east"}, nil)
		if err := known.Write(); (err != nil) != fails {
			t.Fatalf("write: %v, want an error: %t", err, fails)
		}
		if fails {
			if err := os.Remove(accounts); err != nil {
				t.Fatal(err)
			}
		}
	}
	known, err := Read(dir)
	if err != nil || !slices.Equal(known.Clusters, []string{"east"}) {
		t.Errorf("read clusters %v, %v; want east", known.Clusters, err)
	}
	if content, err := os.ReadFile(accounts); err != nil || !strings.Contains(string(content), "dispatcher-east") {
		t.Errorf("the accounts lack the dispatcher of east (%v)", err)
	}
}
