// Package containers runs the suites of package suite in Docker containers,
// each part from the image that an installation uses, and without an engine in
// processes of this machine.
package containers

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	dockernetwork "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/test/containers/docker"
	"muster.dev/muster/test/suite"
)

// startTimeout bounds the start of one container.
const startTimeout = 2 * time.Minute

// provider starts installations that share one dev cluster.
type provider struct {
	engine     *client.Client
	version    string
	network    string // of the dev cluster
	cluster    testcontainers.Container
	port       int    // of the API server, inside and outside
	kubeconfig string // file of the administrator's, for this machine
	dir        string
	started    int
}

// clusterHost is the name of the dev cluster in its network.
const clusterHost = "devcluster"

// newProvider starts the dev cluster; stop ends it.
func newProvider(ctx context.Context, engine *client.Client, dir string) (*provider, error) {
	p := &provider{engine: engine, dir: dir}
	if v, err := engine.ServerVersion(ctx, client.ServerVersionOptions{}); err == nil {
		p.version = v.Version
	}
	n, err := network.New(ctx, network.WithLabels(docker.Labels()))
	if err != nil {
		return p, fmt.Errorf("make the network of the dev cluster: %w", err)
	}
	p.network = n.Name
	ports, err := freePorts(1)
	if err != nil {
		return p, err
	}
	p.port = ports[0]
	p.cluster, err = run(ctx, part{
		image: docker.DevclusterImage(), networks: map[string]string{p.network: clusterHost},
		command: []string{"up", "--fleet=p3", fmt.Sprintf("--listen=0.0.0.0:%d", p.port), "--hostname=" + clusterHost},
		ports:   map[int]int{p.port: p.port}, tmpfs: map[string]string{"/tmp": "mode=1777"},
		health: []string{"devcluster", "status", "--check"},
	})
	if err != nil {
		return p, err
	}
	kubeconfig, err := output(ctx, p.cluster, "devcluster", "kubeconfig")
	if err != nil {
		return p, fmt.Errorf("read the kubeconfig of the dev cluster: %w", err)
	}
	p.kubeconfig = filepath.Join(dir, "admin.kubeconfig")
	return p, os.WriteFile(p.kubeconfig, kubeconfig, 0o600)
}

// stop removes the dev cluster.
func (p *provider) stop(ctx context.Context) error {
	if p.cluster != nil {
		if err := remove(p.cluster); err != nil {
			return err
		}
	}
	if p.network != "" {
		_, err := p.engine.NetworkRemove(ctx, p.network, client.NetworkRemoveOptions{})
		return err
	}
	return nil
}

// Name implements suite.Provider.
func (p *provider) Name() string {
	return fmt.Sprintf("containers of Docker engine %s (%s, %s, %s, %s)", p.version, docker.MusterImage(), docker.NATSImage(), docker.PostgresImage(), docker.DevclusterImage())
}

// Start implements suite.Provider.
func (p *provider) Start(t *testing.T, shape suite.Shape) suite.Installation {
	t.Helper()
	p.started++
	name := fmt.Sprintf("installation-%d", p.started)
	in := &installation{
		provider: p, shape: shape, dir: t.TempDir(), containers: map[string]testcontainers.Container{}, made: map[string]part{},
		access: suite.Access{Kubeconfig: p.kubeconfig, Cluster: name, Namespace: name},
	}
	t.Cleanup(func() { in.stop(t) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*startTimeout)
	defer cancel()
	for _, step := range []func(context.Context) error{in.makeNetworks, in.startNATS, in.startPostgres, in.startServices} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// part is a container as it shall be.
type part struct {
	image    string
	command  []string
	env      map[string]string
	networks map[string]string // with the name of the container in each
	files    map[string]string // in the container, by path
	ports    map[int]int       // of this machine's loopback interface, by the container's
	tmpfs    map[string]string
	health   []string // a command that succeeds when it is ready
	logs     string   // what it says when it is ready, where there is no such command
	host     string   // its host name
	user     string   // empty for the image's
	restart  bool
}

// request is the part for testcontainers.
func (p part) request() testcontainers.GenericContainerRequest {
	bindings := dockernetwork.PortMap{}
	r := testcontainers.ContainerRequest{
		Image: p.image, Cmd: p.command, Env: p.env, Labels: docker.Labels(), Tmpfs: p.tmpfs, NetworkAliases: map[string][]string{},
		ConfigModifier: func(c *container.Config) {
			c.Hostname, c.User = p.host, p.user
		},
		HostConfigModifier: func(h *container.HostConfig) {
			h.CapDrop, h.SecurityOpt = []string{"ALL"}, []string{"no-new-privileges:true"}
			h.PortBindings = bindings
			if p.restart {
				h.RestartPolicy = container.RestartPolicy{Name: container.RestartPolicyUnlessStopped}
			}
		},
	}
	for name, alias := range p.networks {
		r.Networks = append(r.Networks, name)
		r.NetworkAliases[name] = []string{alias}
	}
	for path, content := range p.files {
		r.Files = append(r.Files, testcontainers.ContainerFile{
			Reader: strings.NewReader(content), ContainerFilePath: path, FileMode: 0o444,
		})
	}
	for inside, outside := range p.ports {
		port := dockernetwork.MustParsePort(fmt.Sprintf("%d/tcp", inside))
		r.ExposedPorts = append(r.ExposedPorts, port.String())
		bindings[port] = []dockernetwork.PortBinding{{HostIP: loopback, HostPort: strconv.Itoa(outside)}}
	}
	if p.health != nil {
		r.WaitingFor = ready{p.health}
	} else if p.logs != "" {
		r.WaitingFor = wait.ForLog(p.logs).WithStartupTimeout(startTimeout)
	}
	return testcontainers.GenericContainerRequest{ContainerRequest: r, Started: true, Logger: quiet{}}
}

// loopback is the only interface on which anything is published.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// quiet keeps testcontainers from telling of each step.
type quiet struct{}

// Printf implements log.Logger.
func (quiet) Printf(string, ...any) {}

// freePorts asks the kernel for ports. They are fixed for the life of an
// installation, because a container that is started again would get others.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// admin is the administrator's access to the dev cluster from this machine.
func (p *provider) admin() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", p.kubeconfig)
}

// password makes one.
func password() string { return rand.Text() }
