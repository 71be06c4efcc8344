// Package devcluster runs a dev cluster, a real Kubernetes control plane with simulated
// nodes, in a separate process: the binary of deploy/devcluster. It is for a laptop's
// stack and for tests, not for production.
package devcluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNotBuilt is wrapped when the binary is missing.
var ErrNotBuilt = errors.New("the dev cluster is not built: run `make build`")

// binaryName is the binary's name in the Makefile.
const binaryName = "devcluster"

// EnvBinary is the environment variable that names the binary.
const EnvBinary = "MUSTER_DEVCLUSTER"

// KubeRay is the operator, which a cluster can be without. Its definitions stay.
const KubeRay = "kuberay"

// stopTimeout bounds the wait for the cluster's shutdown.
const stopTimeout = 20 * time.Second

// Options are the settings of a cluster.
type Options struct {
	// Binary is the path of the dev cluster's binary. If it is empty, Find looks at
	// MUSTER_DEVCLUSTER, beside this process's binary, and in PATH.
	Binary string
	// Name distinguishes instances.
	Name string
	// Fleet is a preset or a file.
	Fleet string
	// Without are components that are left out: KubeRay, or none.
	Without []string
	// Progress, unless nil, gets the output of the cluster's start.
	Progress io.Writer
}

// Cluster is a running dev cluster.
type Cluster struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
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
		sibling := filepath.Join(filepath.Dir(own), binaryName)
		if _, err := os.Stat(sibling); err == nil {
			return sibling, nil
		}
	}
	found, err := exec.LookPath(binaryName)
	if err != nil {
		return "", fmt.Errorf("%w: neither beside this program nor in PATH", ErrNotBuilt)
	}
	return found, nil
}

// Start runs a cluster and returns when it is ready. ctx bounds the start only; the
// cluster ends with Stop or the death of this process.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	binary, err := Find(o.Binary)
	if err != nil {
		return nil, err
	}
	c := &Cluster{name: o.Name, binary: binary, exited: make(chan struct{})}
	arguments := []string{"up", "--name", o.Name, "--fleet", o.Fleet, "--exit-on-stdin-close"}
	for _, component := range o.Without {
		arguments = append(arguments, "--without", component)
	}
	c.process = exec.Command(binary, arguments...)
	// A separate process group, so that Ctrl-C in a terminal does not end the cluster
	// before the services that use it.
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
		_ = c.process.Wait() // its output has the reason
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
	return c.run(ctx, "node", command)
}

// Pool runs a `pool` command of the dev cluster on this instance, such as
// "set", "l4", "--stock", "3".
func (c *Cluster) Pool(ctx context.Context, command ...string) error {
	return c.run(ctx, "pool", command)
}

func (c *Cluster) run(ctx context.Context, group string, command []string) error {
	arguments := append([]string{group, "--name", c.name}, command...)
	output, err := exec.CommandContext(ctx, c.binary, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("devcluster %q: %w: %s", arguments, err, bytes.TrimSpace(output))
	}
	return nil
}

// SaveEtcd saves the state of the API server, replacing the last save.
func (c *Cluster) SaveEtcd(ctx context.Context) error { return c.etcd(ctx, "save") }

// RestoreEtcd restores the saved state of the API server. It restarts all components, at
// the same address.
func (c *Cluster) RestoreEtcd(ctx context.Context) error { return c.etcd(ctx, "restore") }

func (c *Cluster) etcd(ctx context.Context, what string) error {
	output, err := exec.CommandContext(ctx, c.binary, "etcd", what, "--name", c.name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("devcluster %q: %s etcd: %w: %s", c.name, what, err, bytes.TrimSpace(output))
	}
	return nil
}

// Components returns the processes of the cluster's components by their names, such as
// "apiserver".
func (c *Cluster) Components(ctx context.Context) (pids map[string]int, err error) {
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
	pids = map[string]int{}
	for _, known := range status.Components {
		pids[known.Name] = known.PID
	}
	return pids, nil
}

// Pause freezes a component, such as "apiserver", until resume is called.
func (c *Cluster) Pause(ctx context.Context, component string) (resume func() error, err error) {
	pids, err := c.Components(ctx)
	if err != nil {
		return nil, err
	}
	pid, known := pids[component]
	if !known {
		names := strings.Join(slices.Sorted(maps.Keys(pids)), ", ")
		return nil, fmt.Errorf("dev cluster %q has no component %q; there are: %s", c.name, component, names)
	}
	resume = func() error { return syscall.Kill(pid, syscall.SIGCONT) }
	return resume, syscall.Kill(pid, syscall.SIGSTOP)
}

// Exited is closed when the cluster has ended, by Stop or by itself.
func (c *Cluster) Exited() <-chan struct{} { return c.exited }

// Stop shuts the cluster down and waits until nothing of it is left.
func (c *Cluster) Stop() {
	_ = c.input.Close() // makes the cluster shut down
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		_ = c.process.Process.Kill()
		<-c.exited
	}
}

// lockedBuffer keeps the cluster's output for the error of a failed start.
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
