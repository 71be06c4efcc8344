package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// State is what an instance records about itself in its directory.
type State struct {
	Name         string      `json:"name"`
	PID          int         `json:"pid"`
	StartedAt    time.Time   `json:"startedAt"`
	Kubeconfig   string      `json:"kubeconfig"`
	APIServer    string      `json:"apiServer"`
	Nodes        int         `json:"nodes"`
	ReadySeconds float64     `json:"readySeconds,omitempty"` // ReadySeconds is 0 until the instance is ready.
	Components   []Component `json:"components"`
	Restored     int         `json:"restored,omitempty"` // Restored counts how often etcd was restored.
}

// Component is a child process of an instance.
type Component struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	Log  string `json:"log"`
}

// RestoreSignal has a supervisor restore etcd.
const RestoreSignal = syscall.SIGUSR1

// Put notes a component in the place of the one before it of that name.
func (s *State) Put(c Component) {
	at := slices.IndexFunc(s.Components, func(known Component) bool { return known.Name == c.Name })
	if at < 0 {
		s.Components = append(s.Components, c)
		return
	}
	s.Components[at] = c
}

// Save writes the state for other processes to read.
func (l *Lock) Save(s State) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state of instance %q: %w", s.Name, err)
	}
	return WriteFile(l.dir.File(stateFile), data)
}

// Load reads the state of a running instance.
func (d Dir) Load() (State, error) {
	if !d.Running() {
		return State{}, fmt.Errorf("instance %q %w (directory %q)", d.Name, ErrNotRunning, d.Path)
	}
	data, err := os.ReadFile(d.File(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, fmt.Errorf("instance %q is still starting (directory %q)", d.Name, d.Path)
	}
	if err != nil {
		return State{}, fmt.Errorf("reading the state of instance %q: %w", d.Name, err)
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("decoding %q: %w", d.File(stateFile), err)
	}
	return s, nil
}

// WriteFile writes a private file whole or not at all.
func WriteFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	defer os.Remove(temp.Name()) // Fails harmlessly once it was renamed.
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Close()); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	return nil
}
