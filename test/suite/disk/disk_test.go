package disk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}

func newDisk(t *testing.T) *Disk {
	t.Helper()
	if err := Here(); err != nil {
		t.Skip(err)
	}
	d, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// put writes a file, and forces it to the disk when it is to last.
func put(t *testing.T, path, content string, lasts bool) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	_, err = f.WriteString(content)
	must(t, err)
	if lasts {
		must(t, f.Sync())
	}
	must(t, f.Close())
}

func force(t *testing.T, directory string) {
	t.Helper()
	f, err := os.Open(directory)
	must(t, err)
	must(t, f.Sync(), f.Close())
}

func want(t *testing.T, path, content string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Errorf("%s has %q, %v; want %q", filepath.Base(path), got, err, content)
	}
}

func wantNone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", filepath.Base(path), err)
	}
}

// TestPowerOff: what was forced to the disk stays, the rest is as it was.
func TestPowerOff(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	name := func(n string) string { return filepath.Join(d.Path, n) }
	must(t, os.Mkdir(name("old"), 0o755))
	put(t, name("kept"), "forced", true)
	put(t, name("long"), string(bytes.Repeat([]byte("a"), 3*page+10)), true)
	put(t, name("renamed"), "renamed", true)
	must(t, d.Sync())

	f, err := os.OpenFile(name("kept"), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("written over")
	must(t, err, f.Close())
	must(t, os.Truncate(name("long"), 5), os.Rename(name("renamed"), name("moved")), os.Remove(name("old")))
	put(t, name("new"), "lost", false)
	want(t, name("kept"), "written over")
	want(t, name("long"), "aaaaa")
	want(t, name("moved"), "renamed")
	must(t, d.PowerOff())

	want(t, name("kept"), "forced")
	want(t, name("long"), string(bytes.Repeat([]byte("a"), 3*page+10)))
	want(t, name("renamed"), "renamed")
	wantNone(t, name("moved"))
	wantNone(t, name("new"))
	if _, err := os.Stat(name("old")); err != nil {
		t.Error(err)
	}
}

// TestNamesLast: with a journal when any file was forced, else when their directory
// was.
func TestNamesLast(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict %t", strict), func(t *testing.T) {
			d := newDisk(t)
			name := func(n string) string { return filepath.Join(d.Path, n) }
			must(t, d.Strict(strict))
			put(t, name("a"), "a", false)
			put(t, name("b"), "b", true)
			must(t, d.PowerOff())
			if strict {
				wantNone(t, name("a"))
				wantNone(t, name("b"))
			} else {
				want(t, name("a"), "")
				want(t, name("b"), "b")
			}
			put(t, name("c"), "c", true)
			force(t, d.Path)
			put(t, name("d"), "d", true)
			must(t, os.Rename(name("d"), name("c")))
			must(t, d.PowerOff())
			want(t, name("c"), "c")
		})
	}
}

// TestSynchronousWritesLast: a file that was opened with O_SYNC waits with each write.
func TestSynchronousWritesLast(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	path := filepath.Join(d.Path, "log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	must(t, err)
	_, err = f.WriteString("written")
	must(t, err, f.Close(), d.PowerOff())
	want(t, path, "written")
}

// TestTorn: of a file that was not forced some pages stay as they were.
func TestTorn(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	path := filepath.Join(d.Path, "table")
	put(t, path, string(bytes.Repeat([]byte("a"), 64*page)), true)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.Write(bytes.Repeat([]byte("b"), 64*page))
	must(t, err, f.Close(), d.PowerOffTorn(1))
	got, err := os.ReadFile(path)
	must(t, err)
	kept := 0
	for p := range 64 {
		switch content := got[p*page : (p+1)*page]; {
		case bytes.Equal(content, bytes.Repeat([]byte("b"), page)):
			kept++
		case !bytes.Equal(content, bytes.Repeat([]byte("a"), page)):
			t.Fatalf("page %d is neither old nor new", p)
		}
	}
	if kept == 0 || kept == 64 {
		t.Errorf("%d of 64 pages are new", kept)
	}
}

// TestFull: nothing more fits; what is there can be written over, and what is deleted
// makes room.
func TestFull(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	name := func(n string) string { return filepath.Join(d.Path, n) }
	put(t, name("a"), "there", true)
	put(t, name("large"), string(make([]byte, 4*page)), true)
	must(t, d.Full(true))
	f, err := os.OpenFile(name("a"), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("stays"), 0)
	must(t, err)
	if _, err := f.WriteAt([]byte("more"), 5); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if _, err := os.Create(name("b")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a file on a full disk: %v", err)
	}
	must(t, os.Remove(name("large")))
	// The room is free when the kernel forgets the file, which may be a little later.
	tick, deadline := time.NewTicker(10*time.Millisecond), time.Now().Add(10*time.Second)
	defer tick.Stop()
	for ; ; <-tick.C { // the kernel says nothing
		b, err := os.Create(name("b"))
		if err == nil {
			must(t, b.Close())
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	put(t, name("b"), "fits", true)
	must(t, d.Full(false))
	put(t, name("c"), string(make([]byte, 9*page)), true)
	want(t, name("a"), "stays")
}

// TestFail: a write or a force fails, and what was to be forced is lost.
func TestFail(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	path := filepath.Join(d.Path, "a")
	put(t, path, "old", true)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("new"), 0)
	must(t, err, d.Fail(true))
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("force on a disk that fails: %v", err)
	}
	if _, err := f.WriteAt([]byte("new"), 0); !errors.Is(err, syscall.EIO) {
		t.Errorf("write on a disk that fails: %v", err)
	}
	must(t, d.Fail(false), f.Sync(), d.PowerOff())
	want(t, path, "old")
}

// TestSlow: each force takes as long as was said.
func TestSlow(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	const slow = 300 * time.Millisecond
	must(t, d.Slow(slow))
	began := time.Now()
	put(t, filepath.Join(d.Path, "a"), "a", true)
	if took := time.Since(began); took < slow {
		t.Errorf("a force took %s", took)
	}
}

// TestStruck: a fault that has hit nothing is distinguished from one that has.
func TestStruck(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	put(t, filepath.Join(d.Path, "a"), "a", true)
	for name, set := range map[string]func(bool) error{
		"full": d.Full, "failing": d.Fail,
		"slow": func(on bool) error {
			if on {
				return d.Slow(time.Millisecond)
			}
			return d.Slow(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, set(true))
			if err := d.Struck(); err == nil {
				t.Errorf("%s: nothing was written, and it has hit something", name)
			}
			_ = os.WriteFile(filepath.Join(d.Path, name), []byte("more"), 0o600) // another file each: one that is there has room
			f, err := os.Open(filepath.Join(d.Path, "a"))
			must(t, err)
			_ = f.Sync()
			must(t, f.Close(), set(false))
			if err := d.Struck(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestCommands: what the disk does not know it says.
func TestCommands(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	if err := d.command("burn"); err == nil {
		t.Error("the disk can burn")
	}
	if err := d.command("slow ly"); err == nil {
		t.Error("a delay that is none")
	}
	must(t, d.Sync())
}
