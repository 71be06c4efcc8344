package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
)

// Provider starts installations.
type Provider interface {
	// Name returns in a few words what the parts are.
	Name() string
	// Start starts an installation, ready to be used, which ends with the test.
	Start(t *testing.T, shape Shape) Installation
}

// Shape is how many there are of what there can be several of.
type Shape struct {
	NATS int // servers, which form a cluster when there are several
	// TLS: connections to and between NATS servers are encrypted, and clients show a
	// certificate. Not every provider can.
	TLS bool
	// Mixed: the queues are those of MixedQueues, and intake takes objects of the
	// cluster.
	Mixed bool
	// Disks: what NATS and Postgres store is on disks that can lose power, be slow, be
	// full and fail. Where such disks cannot be made there are none.
	Disks bool
	// Names: services reach all servers by names, which a DNS server tells. Where that
	// cannot be done they get addresses.
	Names bool
	// Clocks: the clocks of each service and of NATS can jump.
	Clocks bool
	// Quota: the ClusterQueues of MixedQueues are applied while it runs, and can change.
	Quota bool
	// Synced: NATS has `sync_interval: always`, which docs/operations.md asks for where all
	// servers may lose power at once.
	Synced bool
}

// Installation is a running Muster with all that it needs.
type Installation interface {
	// Access returns how the test reaches it.
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
	APIServer       = "the API server"
	DNS             = "DNS"
	// ResearchQuota is no part of an installation: the suite itself lowers it.
	ResearchQuota = "the quota of research"
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
	CutByNATS       Fault = "cut from NATS"        // nothing arrives, nothing is closed
	CutFromPostgres Fault = "cut from Postgres"    // the same
	CutFromAPI      Fault = "cut from the API server"
	// CutInCommit: transactions arrive and are done, their answers are lost and the
	// connections with them.
	CutInCommit Fault = "cut in the middle of COMMIT"
	// Terminated: the server ends all its connections.
	Terminated Fault = "ending all connections"
	// Older: Break takes a backup, and mend has the server come back as of then.
	Older Fault = "coming back from a backup"
	// Of NATS: messages, streams and files are lost while it runs and connections
	// stand. Purged takes the events, too; the kept outcomes have its name without them.
	Purged      Fault = "losing all commands, statuses and observations (purge)"
	KeptPurged  Fault = "losing what it kept of submissions (purge)"
	StreamsGone Fault = "losing all streams (stream rm)"
	StreamsBare Fault = "losing the files of all streams while it runs"
	// HalfClosed: what a service has open towards a server ends at the far side, and
	// nothing notifies the service; new connections pass.
	HalfClosedNATS     Fault = "with half-closed connections to NATS"
	HalfClosedPostgres Fault = "with half-closed connections to Postgres"
	HalfClosedAPI      Fault = "with half-closed connections to the API server"
	// Late: each answer comes late, as from a server whose disk is slow.
	LateNATS     Fault = "hearing NATS half a second late"
	LatePostgres Fault = "hearing Postgres half a second late"
	// Of NATS and Postgres: what was not forced to the disk is lost, all of it or page
	// by page by chance.
	PowerLost     Fault = "losing power"
	PowerLostTorn Fault = "losing power in the middle of writes"
	// Back: Break saves the state of the API server, and mend has it go back to that.
	Back Fault = "going back to a snapshot of etcd"
	// Lowered: of ResearchQuota. Less than a gang uses that runs, and places of it move.
	Lowered Fault = "lowered to 2 while a node drains"
	// Of DNS. Services that are connected by then have to ask it. It answers nothing, or
	// that it has failed.
	Silent   Fault = "answering nothing, and all connections ended"
	ServFail Fault = "answering SERVFAIL, and all connections ended"
	// Of their disks. After a full and a failing one the part is started again, if it
	// needs that, as the runbook says.
	DiskSlow    Fault = "with a disk that takes 500 ms to force something"
	DiskFull    Fault = "with a full disk"
	DiskFailing Fault = "with a failing disk (EIO)"
	// Of the wall clock of a service or of NATS: it jumps by ClockJump, and back when the fault is
	// over, or by ClockSway to one side and the other, again and again.
	ClockAhead  Fault = "with a clock that jumps ahead by an hour, and back"
	ClockBehind Fault = "with a clock that jumps back by an hour, and ahead"
	ClockSways  Fault = "with a clock that jumps by 2 s to and fro"
)

// How far clocks jump.
const (
	ClockJump = time.Hour
	ClockSway = 2 * time.Second
)

// OfClock reports whether a fault needs a clock that can jump.
func (f Fault) OfClock() bool {
	return slices.Contains([]Fault{ClockAhead, ClockBehind, ClockSways}, f)
}

// OfNames reports whether a fault needs servers with names.
func (f Fault) OfNames() bool { return f == Silent || f == ServFail }

// OfDisk reports whether a fault needs a disk that can fail.
func (f Fault) OfDisk() bool {
	return slices.Contains([]Fault{PowerLost, PowerLostTorn, DiskSlow, DiskFull, DiskFailing}, f)
}

// ErrNotHere is wrapped by Break for a fault that the provider cannot cause.
var ErrNotHere = errors.New("this fault cannot be caused here")
