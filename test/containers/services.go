package containers

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/pkg/local/postgres"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/containers/docker"
	"muster.dev/muster/test/suite"
)

func (in *installation) startServices(ctx context.Context) error {
	kubeconfigs, err := in.install(ctx)
	if err != nil {
		return err
	}
	databaseFile := map[string]string{"/tmp/database-url": in.databaseURL(suite.Postgres + ":5432")}
	migration, err := run(ctx, part{
		image: docker.MusterImage(), networks: map[string]string{in.database: "migrate"}, files: databaseFile,
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
			image: docker.MusterImage(), host: name, restart: true, networks: map[string]string{in.bus: name},
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
