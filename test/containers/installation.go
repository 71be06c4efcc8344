package containers

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dockernetwork "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/pkg/local/postgres"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/suite"
)

// installation is a Muster in containers.
type installation struct {
	*provider
	shape      suite.Shape
	dir        string
	access     suite.Access
	secrets    suite.Secrets
	bus        string // network of NATS and the services
	database   string // network of Postgres and the queue-managers
	password   string
	containers map[string]testcontainers.Container
	made       map[string]part
}

// Access implements suite.Installation.
func (in *installation) Access() suite.Access { return in.access }

// Holder implements suite.Installation: a container's host name is its part's.
func (in *installation) Holder(part string) string { return part + "," }

func (in *installation) makeNetworks(ctx context.Context) error {
	for _, name := range []*string{&in.bus, &in.database} {
		n, err := network.New(ctx, network.WithLabels(labels()))
		if err != nil {
			return fmt.Errorf("make a network: %w", err)
		}
		*name = n.Name
	}
	return nil
}

func (in *installation) startNATS(ctx context.Context) error {
	var err error
	if in.secrets, err = suite.NewSecrets(filepath.Join(in.dir, "secrets"), in.access.Cluster); err != nil {
		return err
	}
	ports, err := freePorts(in.shape.NATS)
	if err != nil {
		return err
	}
	accounts, err := os.ReadFile(in.secrets.Accounts)
	if err != nil {
		return err
	}
	var routes, urls []string
	for i := range in.shape.NATS {
		routes = append(routes, suite.NATS(i+1)+":6222")
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	for i := range in.shape.NATS {
		name := suite.NATS(i + 1)
		config := suite.NATSServer{Name: name, Port: 4222, ClusterPort: 6222, Store: "/data", Accounts: "./accounts.conf", Routes: routes}.Config()
		in.made[name] = part{
			image: natsImage(), command: []string{"--config", "/tmp/nats-server.conf"}, networks: map[string]string{in.bus: name},
			files: map[string]string{"/tmp/nats-server.conf": config, "/tmp/accounts.conf": string(accounts)},
			ports: map[int]int{4222: ports[i]}, logs: "Server is ready", host: name,
		}
	}
	if err := in.startAll(ctx, natsNames(in.shape)); err != nil {
		return err
	}
	in.access.NATSURL, in.access.Credentials = strings.Join(urls, ","), in.secrets.Seed(access.Operator)
	return suite.AwaitJetStream(ctx, in.access)
}

func natsNames(shape suite.Shape) []string {
	var names []string
	for i := range shape.NATS {
		names = append(names, suite.NATS(i+1))
	}
	return names
}

// startAll starts parts side by side.
func (in *installation) startAll(ctx context.Context, names []string) error {
	var group errgroup.Group
	started := make([]testcontainers.Container, len(names))
	for i, name := range names {
		group.Go(func() (err error) {
			started[i], err = run(ctx, in.made[name])
			return err
		})
	}
	err := group.Wait()
	for i, c := range started {
		if c != nil {
			in.containers[names[i]] = c
		}
	}
	return err
}

func (in *installation) startPostgres(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	in.password = password()
	in.made[suite.Postgres] = part{
		image: postgresImage(), networks: map[string]string{in.database: suite.Postgres}, ports: map[int]int{5432: ports[0]},
		env:    map[string]string{"POSTGRES_USER": "muster", "POSTGRES_DB": "muster", "POSTGRES_PASSWORD": in.password},
		health: []string{"pg_isready", "--host=127.0.0.1", "--username=muster", "--dbname=muster"}, host: suite.Postgres,
		user: "999:999", // postgres, also in the official image
	}
	if in.containers[suite.Postgres], err = run(ctx, in.made[suite.Postgres]); err != nil {
		return err
	}
	in.access.DatabaseURL = in.databaseURL(fmt.Sprintf("127.0.0.1:%d", ports[0]))
	return nil
}

func (in *installation) databaseURL(host string) string {
	return fmt.Sprintf("postgres://muster:%s@%s/muster?sslmode=disable", in.password, host)
}

func (in *installation) startServices(ctx context.Context) error {
	kubeconfigs, err := in.install(ctx)
	if err != nil {
		return err
	}
	databaseFile := map[string]string{"/tmp/database-url": in.databaseURL(suite.Postgres + ":5432")}
	migration, err := run(ctx, part{
		image: musterImage(), networks: map[string]string{in.database: "migrate"}, files: databaseFile,
		command: []string{"queue-manager", "migrate", "--database-url-file=/tmp/database-url"}, logs: "schema is up to date",
	})
	if err != nil {
		return err
	}
	in.containers["migrate"] = migration
	if err := in.makeLogin(ctx, databaseFile); err != nil {
		return err
	}
	var urls []string
	for _, name := range natsNames(in.shape) {
		urls = append(urls, "nats://"+name+":4222")
	}
	for _, name := range suite.Services() {
		seed, err := os.ReadFile(in.secrets.Seed(suite.NATSUser(name, in.access.Cluster)))
		if err != nil {
			return err
		}
		service := part{
			image: musterImage(), host: name, restart: true, networks: map[string]string{in.bus: name},
			files:  map[string]string{"/tmp/nats.nk": string(seed)},
			health: []string{"muster", "health", "http://127.0.0.1:8080/readyz"},
		}
		switch name {
		case suite.Intake:
		case suite.CapacityWatcher, suite.Dispatcher:
			service.networks[in.network] = name + "-" + in.access.Cluster
			service.files["/tmp/kubeconfig"] = kubeconfigs[name]
		default:
			service.networks[in.database] = name
			service.files["/tmp/database-url"] = databaseFile["/tmp/database-url"]
			service.files["/tmp/queues.yaml"] = suite.QueuesFile(in.access.Namespace)
		}
		service.command = append([]string{suite.Binary(name), "--health-address=127.0.0.1:8080"}, suite.ServiceArguments(name,
			strings.Join(urls, ","), "/tmp/nats.nk", "/tmp/kubeconfig", "/tmp/database-url", "/tmp/queues.yaml", in.access.Cluster, in.shape)...)
		in.made[name] = service
	}
	return in.startAll(ctx, suite.Services())
}

// makeLogin gives the services a login of their own role, in place of the owner's.
func (in *installation) makeLogin(ctx context.Context, databaseFile map[string]string) error {
	login, _, err := postgres.Login(ctx, in.access.DatabaseURL, queuemanager.DatabaseRole)
	if err != nil {
		return err
	}
	parsed, err := url.Parse(login)
	if err != nil {
		return err
	}
	parsed.Host = suite.Postgres + ":5432"
	databaseFile["/tmp/database-url"] = parsed.String()
	return nil
}

// install puts Muster's rights into the cluster and returns the kubeconfigs of
// its services, with the name that the cluster has for containers.
func (in *installation) install(ctx context.Context) (map[string]string, error) {
	admin, err := in.admin()
	if err != nil {
		return nil, err
	}
	if err := install.Install(ctx, admin, []string{in.access.Cluster}, []string{in.access.Namespace}); err != nil {
		return nil, err
	}
	kubeconfigs := map[string]string{}
	for _, name := range []string{suite.CapacityWatcher, suite.Dispatcher} {
		content, err := install.Kubeconfig(ctx, admin, "muster-"+name)
		if err != nil {
			return nil, err
		}
		inside, outside := fmt.Sprintf("https://%s:%d", clusterHost, in.port), fmt.Sprintf("https://127.0.0.1:%d", in.port)
		kubeconfigs[name] = string(bytes.ReplaceAll(content, []byte(outside), []byte(inside)))
	}
	return kubeconfigs, nil
}

// Break implements suite.Installation.
func (in *installation) Break(ctx context.Context, name string, fault suite.Fault) (func(context.Context) error, error) {
	c := in.containers[name]
	if c == nil {
		return nil, fmt.Errorf("there is no part %q", name)
	}
	id := c.GetContainerID()
	switch fault {
	case suite.Killed:
		_, err := in.engine.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
		return func(ctx context.Context) error {
			_, err := in.engine.ContainerStart(ctx, id, client.ContainerStartOptions{})
			return err
		}, err
	case suite.Wiped:
		_, err := in.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return func(ctx context.Context) (err error) {
			in.containers[name], err = run(ctx, in.made[name])
			return err
		}, err
	case suite.Paused:
		err := in.pause(ctx, id)
		return func(ctx context.Context) error {
			_, err := in.engine.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
			return err
		}, err
	case suite.CutByNATS:
		return in.cut(ctx, id, in.bus, name)
	case suite.CutFromPostgres:
		return in.cut(ctx, id, in.database, name)
	}
	return nil, fmt.Errorf("a container cannot be %s", fault)
}

const (
	// pauseTimeout bounds the attempts to pause a container, pauseEvery is between two.
	pauseTimeout = 10 * time.Second
	pauseEvery   = 100 * time.Millisecond
)

// pause freezes the processes of a container. On a busy machine runc gives up when the
// kernel has not frozen all of them within a few milliseconds, and thaws them again
// ("unable to freeze"), so it is asked until it succeeds.
func (in *installation) pause(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	for {
		_, err := in.engine.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pauseEvery):
		case <-ctx.Done():
			return fmt.Errorf("pause the container: %w", err)
		}
	}
}

// cut takes a container off a network: connections stay open, and nothing
// arrives.
func (in *installation) cut(ctx context.Context, id, from, alias string) (func(context.Context) error, error) {
	_, err := in.engine.NetworkDisconnect(ctx, from, client.NetworkDisconnectOptions{Container: id, Force: true})
	return func(ctx context.Context) error {
		_, err := in.engine.NetworkConnect(ctx, from, client.NetworkConnectOptions{
			Container: id, EndpointConfig: &dockernetwork.EndpointSettings{Aliases: []string{alias}},
		})
		return err
	}, err
}

// stop removes everything; what the services said is shown when the test failed.
func (in *installation) stop(t *testing.T) {
	ctx := context.Background()
	for name, c := range in.containers {
		if t.Failed() && name != suite.Postgres {
			showLogs(ctx, t, name, c)
		}
		if err := testcontainers.TerminateContainer(c); err != nil {
			t.Errorf("remove the container of %s: %v", name, err)
		}
	}
	for _, name := range []string{in.bus, in.database} {
		if name == "" {
			continue
		}
		if _, err := in.engine.NetworkRemove(ctx, name, client.NetworkRemoveOptions{}); err != nil {
			t.Errorf("remove a network: %v", err)
		}
	}
}

// shown bounds the log lines that are shown of a part.
const shown = 40

func showLogs(ctx context.Context, t *testing.T, name string, c testcontainers.Container) {
	logs, err := c.Logs(ctx)
	if err != nil {
		return
	}
	defer logs.Close()
	var said bytes.Buffer
	if _, err := said.ReadFrom(logs); err != nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	t.Logf("the end of what %s said:\n%s", name, strings.Join(lines[max(0, len(lines)-shown):], "\n"))
}
