// Package natsserver runs a NATS server with JetStream inside the process, for a laptop's
// stack and for tests. It is not for production, where NATS runs separately.
package natsserver

import (
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startTimeout bounds the wait for the server to take connections.
const startTimeout = 10 * time.Second

// maxStore bounds all streams together, in bytes. Without it the server would refuse
// streams on a disk that is nearly full.
const maxStore = 8 << 30

// maxPayload allows the command to start a gang of thousands of pods; NATS' default is
// 1 MiB.
const maxPayload = 8 << 20

// Server is a running server.
type Server struct {
	server *server.Server
}

// Start runs a server on the loopback interface that keeps its streams in dir. Port -1
// selects a free one.
func Start(dir string, port int) (*Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "muster-local", Host: "127.0.0.1", Port: port,
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
	return &Server{server: s}, nil
}

// URL returns the address for clients.
func (s *Server) URL() string { return s.server.ClientURL() }

// Subscribed reports whether a client subscribes to exactly this subject.
func (s *Server) Subscribed(subject string) bool {
	found, err := s.server.Subsz(&server.SubszOptions{Subscriptions: true, Limit: mostSubscriptions})
	return err == nil && slices.ContainsFunc(found.Subs, func(d server.SubDetail) bool { return d.Subject == subject })
}

// mostSubscriptions is more than the services of one Muster have.
const mostSubscriptions = 10_000

// Stop shuts the server down and waits for it.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
