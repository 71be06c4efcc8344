package local

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/test/suite"
)

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
	if err := in.withClock(name, part); err != nil {
		return err
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
		return suite.MixedQueues(in.access.Namespace, in.shape)
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
