package suite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
)

// Secrets are the files that the parts of an installation need.
type Secrets struct {
	Dir      string
	Accounts string // of the NATS server
}

// FaultUser is who causes faults of NATS from inside.
const FaultUser = "fault"

// NewSecrets makes keys of all NATS users, with the rights that they have in an
// installation, for one cluster.
func NewSecrets(dir, cluster string) (Secrets, error) {
	s := Secrets{Dir: dir, Accounts: filepath.Join(dir, "accounts.conf")}
	users := append(access.Users(cluster), access.User{Name: FaultUser, Publish: []string{">"}, Subscribe: []string{">"}, Person: true})
	var names []string
	for _, user := range users {
		names = append(names, user.Name)
	}
	public, err := keys.Ensure(dir, names)
	if err != nil {
		return s, err
	}
	var accounts bytes.Buffer
	if err := access.WriteConfig(&accounts, users, public); err != nil {
		return s, err
	}
	return s, os.WriteFile(s.Accounts, accounts.Bytes(), 0o644)
}

// Seed is the file of a user's key.
func (s Secrets) Seed(user string) string { return keys.File(s.Dir, user) }

// NATSServer is one server as its configuration says.
type NATSServer struct {
	Name        string
	Host        string // empty for all interfaces
	Port        int
	ClusterPort int
	Store       string
	Accounts    string   // file
	Routes      []string // of all servers, host:port; fewer than two for no cluster
	TLS         *bus.TLS // of the server; nil for none
	// Synced: it writes to the disk before it acknowledges a message (`sync_interval: always`).
	Synced bool
}

// Config is what nats-server reads. It has the settings of
// deploy/nats/nats-server.conf that matter when something breaks.
func (s NATSServer) Config() string {
	interval := "1s"
	if s.Synced {
		interval = "always"
	}
	text := fmt.Sprintf(`server_name: %s
port: %d
max_payload: 8MB
ping_interval: 5s
ping_max: 2
jetstream { store_dir: %q, max_file_store: 8GB, max_memory_store: 64MB, sync_interval: %s }
include %q
`, s.Name, s.Port, s.Store, interval, s.Accounts)
	if s.Host != "" {
		text += fmt.Sprintf("host: %q\n", s.Host)
	}
	encryption := ""
	if s.TLS != nil {
		encryption = fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", s.TLS.Certificate, s.TLS.Key, s.TLS.CA)
		text += encryption
	}
	if len(s.Routes) > 1 {
		// Clients are not told of addresses that lead around a proxy.
		text += fmt.Sprintf("cluster { name: muster, port: %d, no_advertise: true, routes: [nats-route://%s]\n%s}\n",
			s.ClusterPort, strings.Join(s.Routes, ", nats-route://"), encryption)
	}
	return text
}

// jetstreamLook is the pause between two looks, jetstreamAsk bounds one.
const (
	jetstreamLook = 200 * time.Millisecond
	jetstreamAsk  = 2 * time.Second
)

// AwaitJetStream returns when JetStream serves: a cluster elects a leader first.
func AwaitJetStream(ctx context.Context, to Access) error {
	b, err := bus.Connect(ctx, bus.Options{
		URL: to.NATSURL, Name: "await", CredentialsFile: to.Credentials, TLS: to.TLS, Logger: zap.NewNop(), ConnectTimeout: patience,
	})
	if err != nil {
		return err
	}
	defer b.Close()
	js, err := jetstream.New(b.Conn())
	if err != nil {
		return err
	}
	for {
		ask, cancel := context.WithTimeout(ctx, jetstreamAsk)
		_, err := js.AccountInfo(ask)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("JetStream does not serve: %w", err)
		case <-time.After(jetstreamLook):
		}
	}
}

// ServiceArguments is how a service is started. kubeconfig, databaseURL and key
// are files as the service sees them.
func ServiceArguments(part, natsURL, key, kubeconfig, databaseURLFile, queues, cluster string, shape Shape) []string {
	arguments := []string{"--nats-url=" + natsURL, "--nats-credentials=" + key, fmt.Sprintf("--nats-replicas=%d", shape.NATS)}
	switch part {
	case Intake:
		if shape.Mixed {
			arguments = append(arguments, "--cluster="+cluster, "--kubeconfig="+kubeconfig)
		}
	case CapacityWatcher, Dispatcher:
		arguments = append(arguments, "--cluster="+cluster, "--kubeconfig="+kubeconfig)
	default:
		arguments = append(arguments, "--database-url-file="+databaseURLFile, "--queues="+queues)
	}
	return arguments
}

// Binary is the program of a service, and NATSUser who it is for NATS.
func Binary(part string) string {
	if strings.HasPrefix(part, "queue-manager-") {
		return "queue-manager"
	}
	return part
}

// NATSUser is who a service is for NATS.
func NATSUser(part, cluster string) string {
	switch part {
	case CapacityWatcher:
		return access.CapacityWatcher(cluster)
	case Dispatcher:
		return access.Dispatcher(cluster)
	}
	return Binary(part)
}

// Services lists the parts that are Muster's own, in the order of their start.
func Services() []string {
	services := []string{CapacityWatcher, Dispatcher, Intake}
	for i := range QueueManagers {
		services = append(services, QueueManager(i+1))
	}
	return services
}

// QueuesFile is the file of queues: one, for the namespace.
func QueuesFile(namespace string) string {
	return fmt.Sprintf("queues:\n- name: default\n  namespaces: [%s]\n", namespace)
}
