package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// locate gives an instance in a directory for temporary files of this test.
func locate(t *testing.T, name string) Dir {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	return place(t, name)
}

func place(t *testing.T, name string) Dir {
	t.Helper()
	dir, err := Locate(name, "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func claim(t *testing.T, dir Dir) *Lock {
	t.Helper()
	lock, err := dir.Claim()
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func TestLocateRefusesNames(t *testing.T) {
	for _, name := range []string{"", "A", "a/b", "..", "-a", "a-", strings.Repeat("a", 43)} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			if dir, err := Locate(name, ""); err == nil {
				t.Errorf("Locate(%q) = %q, want an error", name, dir.Path)
			}
		})
	}
}

func TestClaimExcludesOthers(t *testing.T) {
	dir := locate(t, "one")
	if dir.Running() {
		t.Error("an instance that was never started runs")
	}
	lock := claim(t, dir)
	if !dir.Running() {
		t.Error("a claimed instance does not run")
	}
	if _, err := dir.Claim(); !errors.Is(err, ErrRunning) {
		t.Errorf("claiming it again: %v, want %v", err, ErrRunning)
	}
	if info, err := os.Stat(dir.Path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v; want it private", info.Mode(), err)
	}
	if err := lock.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed directory: %v, want it gone", err)
	}
	if err := claim(t, dir).Remove(); err != nil {
		t.Errorf("claiming and removing it once more: %v", err)
	}
}

func TestClaimSparesForeignFiles(t *testing.T) {
	path := t.TempDir()
	precious := filepath.Join(path, "thesis.tex")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := Locate("one", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Claim(); err == nil || !strings.Contains(err.Error(), "not an instance's") {
		t.Errorf("claiming a directory with foreign files: %v, want it refused", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("the foreign file: %v", err)
	}
}

func TestClaimClearsWhatAKilledInstanceLeft(t *testing.T) {
	dir := locate(t, "one")
	lock := claim(t, dir)
	if err := lock.Save(State{Name: "one"}); err != nil {
		t.Fatal(err)
	}
	lock.release() // As the kernel does for a killed process.
	if _, err := dir.Load(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("state of a killed instance: %v, want %v", err, ErrNotRunning)
	}
	again := claim(t, dir)
	defer again.release()
	if _, err := os.Stat(dir.File(stateFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old state: %v, want it gone", err)
	}
}

func TestSweepRemovesOnlyTheKilled(t *testing.T) {
	killed := locate(t, "killed")
	running := place(t, "running")
	claim(t, killed).release()
	lock := claim(t, running)
	defer lock.release()
	swept, err := Sweep()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(swept, []string{"killed"}) {
		t.Errorf("swept %q, want only the killed one", swept)
	}
	if _, err := os.Stat(killed.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory of the killed one: %v, want it gone", err)
	}
	listed, err := List()
	if err != nil || !slices.Equal(listed, []Dir{running}) {
		t.Errorf("List() = %v, %v; want the running one", listed, err)
	}
}

func TestStateIsReadBack(t *testing.T) {
	dir := locate(t, "one")
	lock := claim(t, dir)
	defer lock.release()
	if _, err := dir.Load(); err == nil || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("state before the first: %v", err)
	}
	want := State{Name: "one", PID: 42, Nodes: 3, Components: []Component{{Name: "etcd", PID: 43}}}
	if err := lock.Save(want); err != nil {
		t.Fatal(err)
	}
	got, err := dir.Load()
	if err != nil || got.PID != want.PID || len(got.Components) != 1 {
		t.Errorf("Load() = %+v, %v; want %+v", got, err, want)
	}
}
