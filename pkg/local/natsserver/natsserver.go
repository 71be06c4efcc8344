// Package natsserver runs a NATS server with JetStream for a laptop's stack and for tests:
// inside the process, or as a process of its own where MUSTER_NATS_SERVER names the
// program. It is not for production, where NATS runs separately.
package natsserver

import (
	"os"
	"time"
)

// EnvProgram is the environment variable that names a nats-server program. The test suite
// sets it, because a server inside a test would run with the race detector, too.
const EnvProgram = "MUSTER_NATS_SERVER"

// startTimeout bounds the wait for the server to take connections.
const startTimeout = 10 * time.Second

// maxStore bounds all streams together, in bytes. Without it the server would refuse
// streams on a disk that is nearly full.
const maxStore = 8 << 30

// maxPayload allows the command to start a gang of thousands of pods; NATS' default is
// 1 MiB.
const maxPayload = 8 << 20

// mostSubscriptions is more than the services of one Muster have.
const mostSubscriptions = 10_000

const (
	serverName = "muster-local"
	host       = "127.0.0.1"
)

// Server is a running server.
type Server struct {
	running
}

// running is a server that runs in this process or in another.
type running interface {
	// URL returns the address for clients.
	URL() string
	// Subscribed reports whether a client subscribes to exactly this subject.
	Subscribed(subject string) bool
	// Stop shuts the server down and waits for it.
	Stop()
}

// Start runs a server on the loopback interface that keeps its streams in dir. Port -1
// selects a free one.
func Start(dir string, port int) (*Server, error) {
	var (
		server running
		err    error
	)
	if program := os.Getenv(EnvProgram); program != "" {
		server, err = startProcess(program, dir, port)
	} else {
		server, err = startEmbedded(dir, port)
	}
	if err != nil {
		return nil, err
	}
	return &Server{server}, nil
}
