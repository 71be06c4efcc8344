// Package smalldisk gives a test a file system of a few megabytes, to see what happens when
// it is full. It is for tests only.
package smalldisk

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Mount mounts a file system of the given megabytes, which ends with the test, and returns
// its directory, which any account may enter. Without the right to mount the test is
// skipped; in continuous integration, where CI is set, it fails: there it must run.
func Mount(t testing.TB, megabytes int) string {
	t.Helper()
	// Not in a directory of the test: other accounts cannot enter that.
	dir, err := os.MkdirTemp("", "muster-small-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0777", megabytes)); err != nil {
		refuse(t, os.Getenv("CI") != "", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// refuse ends a test that may not mount.
func refuse(t testing.TB, required bool, err error) {
	t.Helper()
	if required {
		t.Fatalf("mount a small file system: %v; CI is set, so run the tests as root", err)
		return
	}
	t.Skipf("no right to mount a small file system, root has it: %v", err)
}

// Grow makes the file system that large, in megabytes.
func Grow(t testing.TB, dir string, megabytes int) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		t.Fatalf("make the file system at %s larger: %v", dir, err)
	}
}
