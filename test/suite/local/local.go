// Package local runs the parts of an installation as processes of this machine,
// for suites where there is no Docker engine: the services' own binaries,
// nats-server, Postgres and the dev cluster. Connections between a service and
// its servers go through a proxy, which can be cut.
package local

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
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
	for _, step := range []func(context.Context) error{in.startDisks, in.startNames, in.startNATS, in.startPostgres, in.buildClocks, in.startServices} {
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
	clocks      map[string]*clock   // by service; empty when they cannot jump
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
			Name: name, Host: "127.0.0.1", Port: clients[i], ClusterPort: routes[i], Store: in.store(name), Accounts: in.secrets.Accounts, Routes: routeHosts, TLS: encryption,
		}.Config()
		file := filepath.Join(in.dir, name+".conf")
		// An include is looked for beside the file that names it.
		config = strings.ReplaceAll(config, in.secrets.Accounts, "./secrets/accounts.conf")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return err
		}
		in.processes[name] = &process{
			binary: filepath.Join(in.Binaries, "nats-server"), log: filepath.Join(in.dir, name+".log"),
			arguments: []string{"--config", file, "--http_port", fmt.Sprint(monitors[i])},
			ready:     fmt.Sprintf("http://127.0.0.1:%d/healthz?js-enabled-only=true", monitors[i]),
		}
		if err := in.processes[name].start(); err != nil {
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

func (in *installation) startServices(ctx context.Context) error {
	if err := in.install(ctx); err != nil {
		return err
	}
	queues := filepath.Join(in.dir, "queues.yaml")
	if err := os.WriteFile(queues, []byte(in.queuesFile()), 0o600); err != nil {
		return err
	}
	// All at once: a port that a service has not opened yet is free for the next one.
	ports, err := freePorts(len(suite.Services()))
	if err != nil {
		return err
	}
	for i, name := range suite.Services() {
		if err := in.prepare(name, queues, ports[i]); err != nil {
			return err
		}
		if err := in.processes[name].start(); err != nil {
			return err
		}
	}
	for _, name := range suite.Services() {
		if err := in.processes[name].awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes a service's proxies and its command.
func (in *installation) prepare(name, queues string, port int) error {
	var urls []string
	for i, host := range in.natsHosts {
		p, err := newProxy(host)
		if err != nil {
			return err
		}
		in.toNATS[name] = append(in.toNATS[name], p)
		urls = append(urls, in.scheme()+in.named(suite.NATS(i+1), p.address()))
	}
	databaseFile := filepath.Join(in.dir, name+".database-url")
	if suite.Binary(name) == "queue-manager" {
		parsed, err := url.Parse(in.databaseURL)
		if err != nil {
			return err
		}
		if in.toPostgres[name], err = newProxy(parsed.Host); err != nil {
			return err
		}
		parsed.Host = in.named(suite.Postgres, in.toPostgres[name].address())
		if err := os.WriteFile(databaseFile, []byte(parsed.String()), 0o600); err != nil {
			return err
		}
	}
	health := fmt.Sprintf("127.0.0.1:%d", port)
	in.processes[name] = &process{
		binary: filepath.Join(in.Binaries, suite.Binary(name)), log: filepath.Join(in.dir, name+".log"), ready: "http://" + health + "/readyz",
		arguments: append([]string{"--health-address=" + health}, suite.ServiceArguments(name, strings.Join(urls, ","),
			in.secrets.Seed(suite.NATSUser(name, in.access.Cluster)), in.kubeconfig(name), databaseFile, queues, in.access.Cluster, in.shape)...),
	}
	part := in.processes[name]
	if in.shape.TLS {
		part.arguments = append(part.arguments, "--nats-ca="+in.access.TLS.CA, "--nats-certificate="+in.access.TLS.Certificate, "--nats-key="+in.access.TLS.Key)
	}
	if in.shape.Clocks {
		c, err := newClock(filepath.Join(in.dir, name+".clock"))
		if err != nil {
			return err
		}
		in.clocks[name], part.environment = c, []string{clockVariable + "=" + c.file}
		part.binary = filepath.Join(in.clockBinaries(), suite.Binary(name))
	}
	part.binary, part.arguments = in.inNamespace(part.binary, part.arguments)
	return nil
}

// kubernetesServices are the services that talk to the API server.
func (in *installation) kubernetesServices() []string {
	services := []string{suite.CapacityWatcher, suite.Dispatcher}
	if in.shape.Mixed {
		services = append(services, suite.Intake)
	}
	return services
}

func (in *installation) queuesFile() string {
	if in.shape.Mixed {
		return suite.MixedQueues(in.access.Namespace)
	}
	return suite.QueuesFile(in.access.Namespace)
}

func (in *installation) kubeconfig(name string) string {
	return filepath.Join(in.dir, name+".kubeconfig")
}

func (in *installation) install(ctx context.Context) error {
	admin, err := clientcmd.BuildConfigFromFlags("", in.access.Kubeconfig)
	if err != nil {
		return err
	}
	if err := install.Install(ctx, admin, []string{in.access.Cluster}, []string{in.access.Namespace}); err != nil {
		return err
	}
	for _, name := range in.kubernetesServices() {
		content, err := install.Kubeconfig(ctx, admin, "muster-"+name)
		if err != nil {
			return err
		}
		if content, err = in.throughProxy(name, content); err != nil {
			return err
		}
		if err := os.WriteFile(in.kubeconfig(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// throughProxy leads a kubeconfig through a proxy.
func (in *installation) throughProxy(name string, kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, err
		}
		p, err := newProxy(server.Host)
		if err != nil {
			return nil, err
		}
		in.toAPI[name] = p
		if cluster.TLSServerName == "" {
			cluster.TLSServerName = server.Hostname() // the certificate's
		}
		server.Host = in.named("api", p.address())
		cluster.Server = server.String()
	}
	return clientcmd.Write(*config)
}

// breakPostgres causes a fault of the database.
func (in *installation) breakPostgres(ctx context.Context, fault suite.Fault) (func(context.Context) error, error) {
	switch fault {
	case suite.Killed:
		in.postgres.Crash()
		return in.postgres.Restart, nil
	case suite.Older:
		return in.postgres.Restore, in.postgres.BackUp(ctx)
	case suite.Terminated:
		conn, err := pgx.Connect(ctx, in.access.DatabaseURL)
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		return func(context.Context) error { return nil }, err
	}
	return nil, fmt.Errorf("%w: Postgres %s", suite.ErrNotHere, fault)
}

// Break implements suite.Installation.
func (in *installation) Break(ctx context.Context, name string, fault suite.Fault) (func(context.Context) error, error) {
	if fault.OfClock() {
		return in.breakClock(ctx, name, fault)
	}
	if fault.OfDisk() {
		return in.breakDisk(ctx, name, fault)
	}
	if name == suite.DNS && fault == suite.Silent {
		return in.breakNames()
	}
	if name == suite.APIServer && fault == suite.Back {
		return in.Cluster.RestoreEtcd, in.Cluster.SaveEtcd(ctx)
	}
	if name == suite.Postgres {
		return in.breakPostgres(ctx, fault)
	}
	part := in.processes[name]
	if part == nil {
		return nil, fmt.Errorf("there is no part %q", name)
	}
	switch {
	case fault == suite.Killed:
		part.kill()
		return func(context.Context) error { return part.start() }, nil
	case fault == suite.Wiped:
		part.kill()
		if err := os.RemoveAll(in.store(name)); err != nil {
			return nil, err
		}
		return func(context.Context) error { return part.start() }, nil
	case fault == suite.Paused:
		return func(context.Context) error { return part.signal(syscall.SIGCONT) }, part.signal(syscall.SIGSTOP)
	case fault == suite.Purged || fault == suite.KeptPurged || fault == suite.StreamsGone || fault == suite.StreamsBare:
		return func(context.Context) error { return nil }, in.loseStreams(ctx, name, fault)
	case fault == suite.HalfClosedNATS && in.toNATS[name] != nil:
		return halfClosed(in.toNATS[name]...), nil
	case fault == suite.HalfClosedPostgres && in.toPostgres[name] != nil:
		return halfClosed(in.toPostgres[name]), nil
	case fault == suite.LateNATS && in.toNATS[name] != nil:
		return late(in.toNATS[name]...), nil
	case fault == suite.LatePostgres && in.toPostgres[name] != nil:
		return late(in.toPostgres[name]), nil
	case fault == suite.CutByNATS && in.toNATS[name] != nil:
		return cut(in.toNATS[name]...), nil
	case fault == suite.CutFromPostgres && in.toPostgres[name] != nil:
		return cut(in.toPostgres[name]), nil
	case fault == suite.CutFromAPI && in.toAPI[name] != nil:
		return cut(in.toAPI[name]), nil
	case fault == suite.CutInCommit && in.toPostgres[name] != nil:
		p := in.toPostgres[name]
		p.swallow(true)
		return func(context.Context) error { p.swallow(false); return nil }, nil
	}
	return nil, fmt.Errorf("%w: %s %s needs containers", suite.ErrNotHere, name, fault)
}

func cut(proxies ...*proxy) func(context.Context) error {
	for _, p := range proxies {
		p.cut(true)
	}
	return func(context.Context) error {
		for _, p := range proxies {
			p.cut(false)
		}
		return nil
	}
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
