package containers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/test/containers/docker"
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
		n, err := network.New(ctx, network.WithLabels(docker.Labels()))
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
			image: docker.NATSImage(), command: []string{"--config", "/tmp/nats-server.conf"}, networks: map[string]string{in.bus: name},
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
		image: docker.PostgresImage(), networks: map[string]string{in.database: suite.Postgres}, ports: map[int]int{5432: ports[0]},
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

const (
	// pauseTimeout bounds the attempts to pause a container, pauseEvery is between two.
	pauseTimeout = 10 * time.Second
	pauseEvery   = 100 * time.Millisecond
)

// stop removes everything; what the services said is shown when the test failed.
func (in *installation) stop(t *testing.T) {
	ctx := context.Background()
	var removed errgroup.Group
	for name, c := range in.containers {
		if t.Failed() && name != suite.Postgres {
			showLogs(ctx, t, name, c)
		}
		removed.Go(func() error {
			if err := remove(c); err != nil {
				t.Errorf("remove the container of %s: %v", name, err)
			}
			return nil
		})
	}
	_ = removed.Wait() // each has reported its own
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
	var output bytes.Buffer
	if _, err := output.ReadFrom(logs); err != nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(output.String()), "\n")
	t.Logf("the end of what %s said:\n%s", name, strings.Join(lines[max(0, len(lines)-shown):], "\n"))
}
