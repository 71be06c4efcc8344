package scratch_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster.dev/muster/pkg/local/scratch"
)

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestDir(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	first, err := scratch.New(base, "s-")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(first.Path) != base {
		t.Errorf("made %q, want it below %q", first.Path, base)
	}
	if err := os.WriteFile(filepath.Join(first.Path, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	dead, young, other := filepath.Join(base, "s-dead"), filepath.Join(base, "s-young"), filepath.Join(base, "other")
	for _, dir := range []string{dead, young, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dead, ".owner"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dead, other, first.Path} { // the first is old, too, but lives
		if err := os.Chtimes(dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	second, err := scratch.New(base, "s-")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{first.Path: true, second.Path: true, dead: false, young: true, other: true} {
		if exists(t, path) != want {
			t.Errorf("%q is there: %t, want %t", path, !want, want)
		}
	}
	first.Remove()
	first.Remove()
	if exists(t, first.Path) {
		t.Error("Remove left the directory")
	}
}
