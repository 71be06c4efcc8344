// Package suite holds the tests of what an installation promises when its parts
// fail, for any way of running the parts: containers (test/containers) or
// processes of this machine (suite/local).
//
// A Provider starts parts and breaks them; the suite loads them with gangs,
// breaks one part after another, and proves at the end, from Postgres, the
// streams and the cluster, that nothing was lost, doubled, leaked or left half.
package suite

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"muster.dev/muster/pkg/bus"
)

// Provider starts installations.
type Provider interface {
	// Name says in a few words what the parts are.
	Name() string
	// Start starts an installation, ready to be used, which ends with the test.
	Start(t *testing.T, shape Shape) Installation
}

// Shape says how many there are of what there can be several of.
type Shape struct {
	NATS int // servers, which form a cluster when there are several
	// Mixed: the queues are those of MixedQueues, and intake takes objects of the
	// cluster.
	Mixed bool
}

// Installation is a running Muster with all that it needs.
type Installation interface {
	// Access says how the test reaches it.
	Access() Access
	// Break causes a fault of a part; mend ends the fault and returns when the
	// part runs again, which is not necessarily ready yet.
	Break(ctx context.Context, part string, fault Fault) (mend func(context.Context) error, err error)
	// Holder is part of what the part, a queue-manager, calls itself as leader.
	Holder(part string) string
}

// Access is how a test reaches an installation.
type Access struct {
	NATSURL     string // of all servers, separated by commas
	Credentials string // file of the operator's
	TLS         bus.TLS
	DatabaseURL string
	Kubeconfig  string // of the administrator
	Cluster     string // what Muster calls it
	Namespace   string // of the queue "default"
}

// Parts. Of NATS and queue-manager there are several, by number from 1.
const (
	Postgres        = "postgres"
	Intake          = "intake"
	CapacityWatcher = "capacity-watcher"
	Dispatcher      = "dispatcher"
)

// NATS names a server of NATS.
func NATS(i int) string { return fmt.Sprintf("nats-%d", i) }

// QueueManager names one of the two queue-managers.
func QueueManager(i int) string { return fmt.Sprintf("queue-manager-%d", i) }

// QueueManagers is how many there are.
const QueueManagers = 2

// Fault is what can happen to a part.
type Fault string

// Faults.
const (
	Killed          Fault = "killed"               // at once, as by kill -9; its data stays
	Wiped           Fault = "killed with its data" // it starts again with nothing
	Paused          Fault = "paused"               // its connections stay open
	CutFromNATS     Fault = "cut from NATS"        // nothing arrives, nothing is closed
	CutFromPostgres Fault = "cut from Postgres"    // the same
	CutFromAPI      Fault = "cut from the API server"
	// CutInCommit: transactions arrive and are done, their answers are lost and the
	// connections with them.
	CutInCommit Fault = "cut in the middle of COMMIT"
	// Terminated: the server ends all its connections.
	Terminated Fault = "ending all connections"
	// Of NATS: messages, streams and files are lost while it runs and connections
	// stand.
	Purged      Fault = "losing all commands, statuses and observations (purge)"
	StreamsGone Fault = "losing all streams (stream rm)"
	StreamsBare Fault = "losing the files of all streams while it runs"
	// HalfClosed: what a service has open towards NATS or Postgres ends at the far
	// side, and nothing tells the service; new connections pass.
	HalfClosedNATS     Fault = "with half-closed connections to NATS"
	HalfClosedPostgres Fault = "with half-closed connections to Postgres"
	// Late: each answer comes late, as from a server whose disk is slow.
	LateNATS     Fault = "hearing NATS half a second late"
	LatePostgres Fault = "hearing Postgres half a second late"
)

// ErrNotHere is wrapped by Break for a fault that the provider cannot cause.
var ErrNotHere = errors.New("this fault cannot be caused here")
