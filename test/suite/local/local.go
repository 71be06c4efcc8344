package local

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/local/postgres"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/disk"
)

// Provider starts installations that share one dev cluster.
type Provider struct {
	Binaries string // directory of the services' binaries and nats-server
	Cluster  *devcluster.Cluster

	started int
}

// Missing lists the binaries that are not there.
func Missing(dir string) []string {
	var missing []string
	for _, name := range []string{"intake", "queue-manager", "capacity-watcher", "dispatcher", "nats-server"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// Name implements suite.Provider.
func (p *Provider) Name() string { return "processes of this machine, without a Docker engine" }

// Start implements suite.Provider.
func (p *Provider) Start(t *testing.T, shape suite.Shape) suite.Installation {
	t.Helper()
	p.started++
	name := fmt.Sprintf("installation-%d", p.started)
	in := &installation{
		Provider: p, shape: shape, dir: t.TempDir(), processes: map[string]*process{},
		toNATS: map[string][]*proxy{}, toPostgres: map[string]*proxy{}, toAPI: map[string]*proxy{}, clocks: map[string]*clock{},
		disks: map[string]*disk.Disk{}, access: suite.Access{Kubeconfig: p.Cluster.Kubeconfig, Cluster: name, Namespace: name},
	}
	t.Cleanup(func() { in.stop(t) })
	for _, step := range []func(context.Context) error{in.startDisks, in.startNames, in.buildClocks, in.startNATS, in.startPostgres, in.startServices} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// installation is a Muster in processes.
type installation struct {
	*Provider
	shape       suite.Shape
	names       *names                // nil when servers have none
	disks       map[string]*disk.Disk // by part; empty when there are none
	dir         string
	access      suite.Access
	secrets     suite.Secrets
	natsHosts   []string
	postgres    *postgres.Server
	databaseURL string // of the services' login
	processes   map[string]*process
	toNATS      map[string][]*proxy // by service, one for each server
	toPostgres  map[string]*proxy   // by queue-manager
	toAPI       map[string]*proxy   // by service
	clocks      map[string]*clock   // by part; empty when they cannot jump
}

// Access implements suite.Installation.
func (in *installation) Access() suite.Access { return in.access }

// Holder implements suite.Installation.
func (in *installation) Holder(part string) string {
	return fmt.Sprintf("process %d\n", in.processes[part].cmd.Process.Pid)
}

func (in *installation) startNATS(ctx context.Context) error {
	var err error
	if in.secrets, err = suite.NewSecrets(filepath.Join(in.dir, "secrets"), in.access.Cluster); err != nil {
		return err
	}
	encryption, err := in.encrypt()
	if err != nil {
		return err
	}
	ports, err := freePorts(3 * in.shape.NATS)
	if err != nil {
		return err
	}
	clients, routes, monitors := ports[:in.shape.NATS], ports[in.shape.NATS:2*in.shape.NATS], ports[2*in.shape.NATS:]
	var routeHosts, urls []string
	for i := range in.shape.NATS {
		routeHosts = append(routeHosts, fmt.Sprintf("127.0.0.1:%d", routes[i]))
		in.natsHosts = append(in.natsHosts, fmt.Sprintf("127.0.0.1:%d", clients[i]))
		urls = append(urls, in.scheme()+in.natsHosts[i])
	}
	for i := range in.shape.NATS {
		name := suite.NATS(i + 1)
		config := suite.NATSServer{
			Name: name, Host: "127.0.0.1", Port: clients[i], ClusterPort: routes[i], Store: in.store(name), Accounts: in.secrets.Accounts, Routes: routeHosts, TLS: encryption, Synced: in.shape.Synced,
		}.Config()
		file := filepath.Join(in.dir, name+".conf")
		// An include is looked for beside the file that names it.
		config = strings.ReplaceAll(config, in.secrets.Accounts, "./secrets/accounts.conf")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return err
		}
		part := &process{
			binary: filepath.Join(in.Binaries, "nats-server"), log: filepath.Join(in.dir, name+".log"),
			arguments: []string{"--config", file, "--http_port", fmt.Sprint(monitors[i])},
			ready:     fmt.Sprintf("http://127.0.0.1:%d/healthz?js-enabled-only=true", monitors[i]),
		}
		in.processes[name] = part
		if err := in.withClock(name, part); err != nil {
			return err
		}
		if err := part.start(); err != nil {
			return err
		}
	}
	in.access.NATSURL, in.access.Credentials = strings.Join(urls, ","), in.secrets.Seed(access.Operator)
	return suite.AwaitJetStream(ctx, in.access)
}

func (in *installation) startPostgres(ctx context.Context) error {
	var err error
	options := postgres.Options{}
	if on := in.disks[suite.Postgres]; on != nil {
		options.Dir = on.Path
	}
	if in.postgres, err = postgres.Start(ctx, options); err != nil {
		return err
	}
	if in.access.DatabaseURL, err = in.postgres.CreateDatabase(ctx, "muster", ""); err != nil {
		return err
	}
	if err := queuemanager.Migrate(ctx, in.access.DatabaseURL, zap.NewNop()); err != nil {
		return err
	}
	if in.databaseURL, _, err = postgres.Login(ctx, in.access.DatabaseURL, queuemanager.DatabaseRole); err != nil {
		return err
	}
	return in.settle(suite.Postgres) // initdb leaves that to the kernel
}

// stop ends everything; what the services said is shown when the test failed.
func (in *installation) stop(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(in.processes)) {
		p := in.processes[name]
		if p.cmd == nil {
			continue
		}
		p.kill()
		if t.Failed() {
			t.Logf("the end of what %s said:\n%s", name, tail(p.log))
		}
	}
	for _, proxies := range in.toNATS {
		for _, p := range proxies {
			p.close()
		}
	}
	for _, p := range in.toPostgres {
		p.close()
	}
	for _, p := range in.toAPI {
		p.close()
	}
	if in.postgres != nil {
		in.postgres.Stop()
	}
	if in.names != nil {
		_ = in.names.conn.Close()
	}
	for _, each := range in.disks {
		each.Stop()
	}
}
