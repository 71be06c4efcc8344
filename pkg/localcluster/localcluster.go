// Package localcluster runs a dev cluster, a real Kubernetes control plane with
// played nodes, as a process of its own: the binary of deploy/devcluster. It is
// for a laptop's stack and for tests, and not for production.
package localcluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
)

// ErrNotBuilt is wrapped when the binary is not to be found.
var ErrNotBuilt = errors.New("the dev cluster is not built: run `make build`")

// binaryName is what the Makefile calls the binary.
const binaryName = "devcluster"

// EnvBinary is the environment variable that names the binary.
const EnvBinary = "MUSTER_DEVCLUSTER"

// stopTimeout bounds the wait for the cluster to take itself down.
const stopTimeout = 20 * time.Second

// Options say which cluster.
type Options struct {
	// Binary is the dev cluster's; empty looks at MUSTER_DEVCLUSTER, beside this
	// process's own binary, and in PATH.
	Binary string
	// Name keeps instances apart.
	Name string
	// Fleet is a preset or a file.
	Fleet string
	// Progress gets the lines that the cluster prints while it starts; nil for none.
	Progress io.Writer
}

// Cluster is a running dev cluster.
type Cluster struct {
	// Kubeconfig is the path of the administrator's.
	Kubeconfig   string  `json:"kubeconfig"`
	APIServer    string  `json:"apiServer"`
	Nodes        int     `json:"nodes"`
	ReadySeconds float64 `json:"readySeconds"`

	name    string
	binary  string
	process *exec.Cmd
	input   io.Closer
	exited  chan struct{}
	output  lockedBuffer
}

// Find returns the path of the binary; the error wraps ErrNotBuilt.
func Find(binary string) (string, error) {
	if binary == "" {
		binary = os.Getenv(EnvBinary)
	}
	if binary != "" {
		if _, err := os.Stat(binary); err != nil {
			return "", fmt.Errorf("%w: %w", ErrNotBuilt, err)
		}
		return binary, nil
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), binaryName)
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	found, err := exec.LookPath(binaryName)
	if err != nil {
		return "", fmt.Errorf("%w: neither beside this program nor in PATH", ErrNotBuilt)
	}
	return found, nil
}

// Start runs a cluster and returns when it is ready. ctx bounds the start only;
// Stop ends the cluster, and so does the death of this process.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	binary, err := Find(o.Binary)
	if err != nil {
		return nil, err
	}
	c := &Cluster{name: o.Name, binary: binary, exited: make(chan struct{})}
	c.process = exec.Command(binary, "up", "--name", o.Name, "--fleet", o.Fleet, "--exit-on-stdin-close")
	// A group of its own, so that Ctrl-C in a terminal does not take the cluster
	// away under those who are still stopping.
	c.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.process.Stderr = &c.output
	if o.Progress != nil {
		c.process.Stderr = io.MultiWriter(&c.output, o.Progress)
	}
	if c.input, err = c.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start dev cluster %q: %w", o.Name, err)
	}
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start dev cluster %q: %w", o.Name, err)
	}
	if err := c.process.Start(); err != nil {
		return nil, fmt.Errorf("start dev cluster %q: %w", o.Name, err)
	}
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(stdout).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, c)
		}
		ready <- err
		_ = c.process.Wait() // how it ended is told by what it printed
		close(c.exited)
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.Stop()
		return nil, fmt.Errorf("start dev cluster %q: %w\n%s", o.Name, err, c.output.String())
	}
	return c, nil
}

// Node runs a `node` command of the dev cluster on this instance, such as
// "add", "--pattern", "gpu-{0}".
func (c *Cluster) Node(ctx context.Context, command ...string) error {
	arguments := append([]string{"node", "--name", c.name}, command...)
	output, err := exec.CommandContext(ctx, c.binary, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("devcluster %q: %w: %s", arguments, err, bytes.TrimSpace(output))
	}
	return nil
}

// Pause stops a component, such as "apiserver", as if its machine hung, until
// resume is called.
func (c *Cluster) Pause(ctx context.Context, component string) (resume func() error, err error) {
	out, err := exec.CommandContext(ctx, c.binary, "status", "--name", c.name, "-o", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("status of dev cluster %q: %w", c.name, err)
	}
	var status struct {
		Components []struct {
			Name string `json:"name"`
			PID  int    `json:"pid"`
		} `json:"components"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return nil, fmt.Errorf("status of dev cluster %q: %w", c.name, err)
	}
	var names []string
	for _, known := range status.Components {
		if known.Name == component {
			resume = func() error { return syscall.Kill(known.PID, syscall.SIGCONT) }
			return resume, syscall.Kill(known.PID, syscall.SIGSTOP)
		}
		names = append(names, known.Name)
	}
	return nil, fmt.Errorf("dev cluster %q has no component %q; there are: %s", c.name, component, strings.Join(names, ", "))
}

// Exited is closed when the cluster has ended, by Stop or on its own.
func (c *Cluster) Exited() <-chan struct{} { return c.exited }

// Stop takes the cluster down and waits until nothing of it is left.
func (c *Cluster) Stop() {
	_ = c.input.Close() // its sign to end
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		_ = c.process.Process.Kill()
		<-c.exited
	}
}

// lockedBuffer keeps what the cluster prints, for the error of a failed start.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
