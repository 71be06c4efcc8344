// Package disk has a disk for servers under test that can lose power, be slow, be
// full and fail: a file system in memory, by FUSE, that knows what was forced to it.
//
// What is written and not forced (fsync, fdatasync, O_SYNC) is lost when the power
// goes; so are creations, renames and deletions. The file system is served by a
// process of its own, this program once more, so that a test's own files cannot wait
// for themselves. It is not for anything that is to be kept.
package disk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster.dev/muster/pkg/local/scratch"
)

// mountedAt names, for the process that serves, the directory to mount at.
const mountedAt = "MUSTER_TEST_DISK"

// ErrNotHere is wrapped when this machine cannot mount file systems of processes.
var ErrNotHere = errors.New("no FUSE here")

// Here returns why a disk cannot be made on this machine; nil when it can.
func Here() error {
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	_ = device.Close() // nothing was done with it
	if os.Geteuid() == 0 {
		return nil
	}
	for _, helper := range []string{"fusermount3", "fusermount"} {
		if _, err := exec.LookPath(helper); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: neither root nor fusermount3", ErrNotHere)
}

// Disk is a mounted file system.
type Disk struct {
	Path string // where the files are

	home     *scratch.Dir
	cmd      *exec.Cmd
	ended    chan struct{}
	mu       sync.Mutex
	commands io.WriteCloser
	answers  *bufio.Reader
}

// Start mounts an empty disk, which any user may enter. The program must call Serve
// first of all. The disk ends with this process.
func Start() (*Disk, error) {
	if err := Here(); err != nil {
		return nil, err
	}
	home, err := scratch.New("", "muster-disk-")
	if err != nil {
		return nil, err
	}
	d := &Disk{home: home, Path: filepath.Join(home.Path, "files"), ended: make(chan struct{})}
	if err := d.mount(); err != nil {
		d.Stop()
		return nil, fmt.Errorf("mount a disk at %q: %w", d.Path, err)
	}
	return d, nil
}

func (d *Disk) mount() error {
	if err := errors.Join(os.Chmod(d.home.Path, 0o711), os.Mkdir(d.Path, 0o755)); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	d.cmd = exec.Command(program)
	d.cmd.Env = append(os.Environ(), mountedAt+"="+d.Path)
	d.cmd.Stderr = os.Stderr
	if d.commands, err = d.cmd.StdinPipe(); err != nil {
		return err
	}
	output, err := d.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	d.answers = bufio.NewReader(output)
	if err := d.start(); err != nil {
		return err
	}
	return d.answer()
}

// start starts the process in a group of its own: a Ctrl-C is for who uses the disk.
func (d *Disk) start() error {
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		close(d.ended)
		return err
	}
	go func() {
		_, _ = d.cmd.Process.Wait() // what went wrong it has said
		close(d.ended)
	}()
	return nil
}

// Sync forces everything to the disk.
func (d *Disk) Sync() error { return d.command("sync") }

// PowerOff loses what was not forced to the disk. A process that has files open is to be
// killed first.
func (d *Disk) PowerOff() error { return d.command("off") }

// PowerOffTorn is PowerOff where each page that was not forced to the disk is lost or
// kept by chance, as is the length of each file.
func (d *Disk) PowerOffTorn(seed uint64) error { return d.command("torn %d", seed) }

// Strict reports whether names last only when their directory was forced to the disk.
// Otherwise they last when any file was, as with the journal of ext4 or XFS.
func (d *Disk) Strict(on bool) error { return d.command("strict %t", on) }

// Slow delays each force.
func (d *Disk) Slow(by time.Duration) error { return d.command("slow %s", by) }

// Full leaves no room for more.
func (d *Disk) Full(on bool) error { return d.command("full %t", on) }

// Fail fails each write and each force, which loses what was to be forced.
func (d *Disk) Fail(on bool) error { return d.command("fail %t", on) }

// Struck returns an error when neither a full nor a failing nor a slow disk has hit a
// write or a force since it was last asked: then nothing was tried.
func (d *Disk) Struck() error { return d.command("struck") }

// Stop unmounts the disk, also while files are open.
func (d *Disk) Stop() {
	if d.commands != nil {
		_ = d.commands.Close() // then it ends
		<-d.ended
	}
	d.home.Remove()
}

func (d *Disk) command(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(d.commands, what); err != nil {
		return fmt.Errorf("disk: %s: %w", what, err)
	}
	if err := d.answer(); err != nil {
		return fmt.Errorf("disk: %s: %w", what, err)
	}
	return nil
}

// done is the answer that nothing went wrong.
const done = "done"

func (d *Disk) answer() error {
	line, err := d.answers.ReadString('\n')
	if err != nil {
		return fmt.Errorf("its process has ended: %w", err)
	}
	if line = strings.TrimSpace(line); line != done {
		return errors.New(line)
	}
	return nil
}
