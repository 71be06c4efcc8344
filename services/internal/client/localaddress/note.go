// Package localaddress is the note that a running `muster-dev up` leaves for other commands of
// the same user: the address of its NATS. It is not for finding other installations.
package localaddress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrNone means that no `muster-dev up` runs.
var ErrNone = errors.New("no `muster-dev up` is running")

// ErrTaken means that another `muster-dev up` has left its note.
var ErrTaken = errors.New("another `muster-dev up` is running")

// fileVariable names the file of the note, for several at a time.
const fileVariable = "MUSTER_DEV_FILE"

// Stack is what the note has of the running stack.
type Stack struct {
	NATSURL    string `json:"natsURL"`
	Kubeconfig string `json:"kubeconfig"`
	// HTTPURL is of the HTTP API, TokenFile has a token of an operator for it.
	HTTPURL   string    `json:"httpURL,omitempty"`
	TokenFile string    `json:"tokenFile,omitempty"`
	Cluster   string    `json:"cluster"` // in words
	PID       int       `json:"pid"`
	Started   time.Time `json:"started"`
}

// File is where the note of this user is.
func File() (string, error) {
	if file := os.Getenv(fileVariable); file != "" {
		return file, nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the directory for the note of muster-dev: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "muster", "dev.json"), nil
}

// Read returns the note in file. The error wraps ErrNone when there is
// no note, or when its author is dead.
func Read(file string) (Stack, error) {
	var stack Stack
	note, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return stack, ErrNone
	}
	if err != nil {
		return stack, fmt.Errorf("read the note of muster-dev: %w", err)
	}
	defer func() { _ = note.Close() }()
	// The author keeps the file locked for as long as it lives.
	if syscall.Flock(int(note.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return stack, fmt.Errorf("%w: the process that wrote %q has ended", ErrNone, file)
	}
	err = json.NewDecoder(note).Decode(&stack)
	if errors.Is(err, io.EOF) {
		return stack, fmt.Errorf("%w: it is still starting", ErrNone)
	}
	if err != nil {
		return stack, fmt.Errorf("read the note of muster-dev %q: %w", file, err)
	}
	return stack, nil
}

// Note is a place that this process has reserved.
type Note struct {
	file *os.File
}

// Reserve reserves the place, before the stack is started. The error wraps ErrTaken
// when another process has it.
func Reserve(file string) (*Note, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for the note of muster-dev: %w", err)
	}
	for {
		note, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("make the note of muster-dev: %w", err)
		}
		if err := syscall.Flock(int(note.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = note.Close()
			return nil, fmt.Errorf("%w: its note is %q; stop it, or set %s to another file", ErrTaken, file, fileVariable)
		}
		if current(note, file) {
			return &Note{file: note}, nil
		}
		_ = note.Close() // its author removed it after we opened it
	}
}

// current reports whether the open file is still the one of that name.
func current(open *os.File, name string) bool {
	have, err := open.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(have, named)
}

// Write fills the note in, when the stack is ready.
func (n *Note) Write(stack Stack) error {
	encoded, err := json.MarshalIndent(stack, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the note of muster-dev: %w", err)
	}
	if err := n.file.Truncate(0); err != nil {
		return fmt.Errorf("write the note of muster-dev: %w", err)
	}
	if _, err := n.file.WriteAt(append(encoded, '\n'), 0); err != nil {
		return fmt.Errorf("write the note of muster-dev: %w", err)
	}
	return nil
}

// Remove deletes the note and releases the place.
func (n *Note) Remove() {
	_ = os.Remove(n.file.Name())
	_ = n.file.Close()
}
