// Package launch starts the components of one instance in the right order and
// waits until the cluster they make is ready.
package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/devcluster/internal/controlplane"
	"muster.dev/muster/deploy/devcluster/internal/instance"
	"muster.dev/muster/deploy/devcluster/internal/process"
)

// Names of components, which are also those of the hidden subcommands that run
// them.
const (
	Etcd              = "etcd"
	APIServer         = "apiserver"
	Scheduler         = "scheduler"
	ControllerManager = "controller-manager"
	Kubelet           = "kwok"
	RayOperator       = "kuberay"
)

// requestTimeout bounds one request while the API server comes up: its socket
// accepts connections before it answers them.
const requestTimeout = 5 * time.Second

// Config is what to start.
type Config struct {
	Dir       instance.Dir
	Nodes     []*corev1.Node
	Manifests []string // Manifests are files or directories to apply.
	// Listen is the address of the API server; empty takes a free port of the
	// loopback interface.
	Listen string
	// Hostname is another name of this machine for the certificate; may be empty.
	Hostname string
	// Progress gets short lines about the start.
	Progress func(format string, args ...any)
	// Without are components that are not started: RayOperator, or none.
	Without []string
	// Started is called with each component that was started.
	Started func(*process.Component)
}

// Cluster is a started cluster.
type Cluster struct {
	APIServer string // from this machine
	PublicURL string // by the name of this machine; APIServer without one

	config     Config
	spawner    *process.Spawner
	socket     *os.File // of the API server, for those that come after the first
	mu         sync.Mutex
	components []*process.Component
	replaced   map[*process.Component]bool // they end because others take their places
	failed     chan error
}

// Start starts a cluster and returns when it is ready. The cluster is returned
// even with an error, for Stop.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	c := &Cluster{config: config, spawner: process.NewSpawner(), replaced: map[*process.Component]bool{}, failed: make(chan error, 1)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-c.failed:
			cancel(err)
			c.failed <- err
		case <-ctx.Done():
		}
	}()
	if err := c.start(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			return c, cause // Which component failed, or why to stop.
		}
		return c, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	listener, err := c.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	c.APIServer = "https://" + net.JoinHostPort("127.0.0.1", port)
	c.PublicURL = c.APIServer
	if c.config.Hostname != "" {
		c.PublicURL = "https://" + net.JoinHostPort(c.config.Hostname, port)
	}
	if err := writeCredentials(c.config.Dir, c.APIServer, c.config.Hostname); err != nil {
		return err
	}
	if c.socket, err = listener.File(); err != nil {
		return fmt.Errorf("passing on the socket of the API server: %w", err)
	}
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.config.Dir.AdminKubeconfig())
	if err != nil {
		return fmt.Errorf("reading back the kubeconfig: %w", err)
	}
	config.Timeout = requestTimeout
	config.QPS = -1
	if err := controlplane.WaitHealthy(ctx, config, "/readyz"); err != nil {
		return err
	}
	c.config.Progress("API server is ready at %s", c.APIServer)
	return c.populate(ctx, config)
}

type (
	componentArg  string
	componentFile struct{ *os.File }
)

// startComponent starts the component name of this program and watches over it.
func (c *Cluster) startComponent(name string, extras ...any) (*process.Component, error) {
	spec := process.Spec{
		Name:    name,
		Args:    []string{"component", name, "--name=" + c.config.Dir.Name, "--dir=" + c.config.Dir.Path},
		LogFile: c.config.Dir.Log(name),
	}
	for _, extra := range extras {
		switch extra := extra.(type) {
		case componentArg:
			spec.Args = append(spec.Args, string(extra))
		case componentFile:
			spec.Files = append(spec.Files, extra.File)
		}
	}
	component, err := process.Start(c.spawner, spec)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.components = append(c.components, component)
	c.mu.Unlock()
	c.config.Started(component)
	go func() {
		<-component.Ended()
		c.mu.Lock()
		replaced := c.replaced[component]
		c.mu.Unlock()
		if replaced {
			return
		}
		select {
		case c.failed <- component.Failure():
		default: // Another one has failed before.
		}
	}()
	return component, nil
}

func (c *Cluster) component(name string) *process.Component {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, component := range c.components {
		if component.Name == name {
			return component
		}
	}
	panic("component " + name + " was not started")
}

// Failed gets the failure of the first component that ends.
func (c *Cluster) Failed() <-chan error { return c.failed }

// Stop ends all components and waits until they are gone.
func (c *Cluster) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all sync.WaitGroup
	for _, component := range c.components {
		all.Go(component.Kill)
	}
	all.Wait()
}
