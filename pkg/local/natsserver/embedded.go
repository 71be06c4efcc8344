package natsserver

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

// embedded is a server inside this process.
type embedded struct {
	server *server.Server
}

func startEmbedded(dir string, port int) (*embedded, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: serverName, Host: host, Port: port,
		JetStream: true, StoreDir: dir, JetStreamMaxStore: maxStore, MaxPayload: maxPayload,
		NoSigs: true, NoLog: true,
	})
	if err != nil {
		return nil, fmt.Errorf("configure nats-server in %q: %w", dir, err)
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return nil, fmt.Errorf("nats-server on port %d accepted no connections within %s: is the port in use?", port, startTimeout)
	}
	return &embedded{server: s}, nil
}

func (e *embedded) URL() string { return e.server.ClientURL() }

func (e *embedded) Subscribed(subject string) bool {
	found, err := e.server.Subsz(&server.SubszOptions{Subscriptions: true, Limit: mostSubscriptions})
	return err == nil && slices.ContainsFunc(found.Subs, func(d server.SubDetail) bool { return d.Subject == subject })
}

func (e *embedded) Stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}
