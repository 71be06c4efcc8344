package query

import (
	"context"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// StatusSubject asks how Muster itself is. Any queue-manager answers, also while none
// leads.
const StatusSubject = "muster.query.status"

// StatusTimeout bounds what each part of an answer takes. A part that does not answer
// within it is silent.
const StatusTimeout = 2 * time.Second

// StatusAnswer is the condition of Muster's parts. What could not be learned has the
// reason in a field Silent.
type StatusAnswer struct {
	At time.Time `json:"at"`
	// Leader is the last one that Postgres has; nil while Postgres is silent.
	Leader *LeaderStatus `json:"leader,omitempty"`
	// Workloads counts the workloads that have not ended, by phase.
	Workloads map[workload.Phase]int `json:"workloads,omitempty"`
	// Held lists the queues that are held, each with who or what holds it.
	Held []string `json:"held,omitempty"`
	// Budgets lists those that are used up and only warn.
	Budgets []string `json:"budgets,omitempty"`
	// Inactive lists the inactive ClusterQueues for which workloads wait.
	Inactive []InactiveQueue `json:"inactive,omitempty"`
	Clusters []ClusterStatus `json:"clusters,omitempty"`
	Postgres PostgresStatus  `json:"postgres"`
	NATS     NATSStatus      `json:"nats"`
	// HeldWorkloads counts the workloads that an operator has put on hold.
	HeldWorkloads int `json:"heldWorkloads,omitempty"`
	// Stuck are gangs that do not go on by themselves, Misplaced those with pods on other nodes
	// than are reserved for them, and TrustedPlaces those of queues where that is meant so.
	Stuck         GangsToSee `json:"stuck,omitzero"`
	Misplaced     GangsToSee `json:"misplaced,omitzero"`
	TrustedPlaces GangsToSee `json:"trustedPlaces,omitzero"`
	// Attention lists what a person has to look at, each with what to do.
	Attention []string `json:"attention,omitempty"`
	// About has, for each line of Attention, what the line is about.
	About []About `json:"about,omitempty"`
	// Notes lists what keeps work waiting and may be meant so.
	Notes []string `json:"notes,omitempty"`
}

// MaxGangsToSee is how many gangs are named of those that a person has to look at.
const MaxGangsToSee = 5

// GangsToSee are gangs that a person has to look at: the first MaxGangsToSee, the oldest first,
// and how many there are in all.
type GangsToSee struct {
	Gangs []GangToSee `json:"gangs,omitempty"`
	InAll int         `json:"inAll,omitempty"`
}

// GangToSee is a gang that a person has to look at.
type GangToSee struct {
	ID        workload.ID    `json:"id"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Queue     string         `json:"queue"`
	Phase     workload.Phase `json:"phase"`
	Since     time.Time      `json:"since,omitzero"`
	// Why is the message of its reason; empty for none.
	Why string `json:"why,omitempty"`
}

// About is what a line is about; all is empty for Muster's own parts.
type About struct {
	Workload workload.ID `json:"workload,omitempty"`
	Cluster  string      `json:"cluster,omitempty"`
	// DeadLetters: it is about the messages that could not be processed.
	DeadLetters bool `json:"deadLetters,omitempty"`
}

// InactiveQueue is a ClusterQueue that admits nothing although its manifest is valid.
type InactiveQueue struct {
	Name    string `json:"name"`
	Why     string `json:"why"`
	Waiting int    `json:"waiting"`
}

// LeaderStatus is the queue-manager that leads.
type LeaderStatus struct {
	Holder string    `json:"holder"`
	Epoch  int64     `json:"epoch"`
	Since  time.Time `json:"since"`
	// Leads: its session holds the lock now. Otherwise it was the last to lead.
	Leads bool `json:"leads"`
	// Standbys are the queue-managers that wait for the lock at the moment.
	Standbys int `json:"standbys"`
}

// ClusterStatus is the state of a cluster.
type ClusterStatus struct {
	Name       string `json:"name"`
	Nodes      int    `json:"nodes"`
	ReadyNodes int    `json:"readyNodes"`
	// Live are the workloads that hold places in it.
	Live int `json:"live"`
	// State is ClusterReady or another of these.
	State string `json:"state,omitempty"`
	// Labels, Cost, Queues and Flavors are of its description, if it has one.
	Labels  map[string]string `json:"labels,omitempty"`
	Cost    quota.Cost        `json:"costPerHour,omitempty"`
	Queues  []string          `json:"queues,omitempty"`
	Flavors []string          `json:"flavors,omitempty"`
	// Cordon is set while an operator cordons or drains it.
	Cordon *quota.ClusterCordon `json:"cordon,omitempty"`
	// LiveSince is when the first of them was admitted.
	LiveSince time.Time `json:"liveSince,omitzero"`
	// WatcherHeard and DispatcherHeard are the times of the last report of each in NATS;
	// zero for none. A watcher repeats the state of nodes, and a dispatcher that of live
	// workloads, every few seconds.
	WatcherHeard    time.Time `json:"watcherHeard,omitzero"`
	DispatcherHeard time.Time `json:"dispatcherHeard,omitzero"`
	// FailedOver is when the gangs had left the cluster whose permission had run out; zero once
	// its dispatcher has asked for the permission again.
	FailedOver time.Time `json:"failedOver,omitzero"`
	// Silent says why these times are not known.
	Silent string `json:"silent,omitempty"`
}

// States of a cluster, the first that is true.
const (
	ClusterLeaving  = "leaving" // it leaves, and workloads hold places in it
	ClusterLeft     = "left"
	ClusterDraining = "draining" // it is drained, and workloads hold places in it
	ClusterDrained  = "drained"
	ClusterCordoned = "cordoned"
	ClusterEmpty    = "no nodes" // it has reported none
	ClusterSilent   = "silent"   // its capacity-watcher has not reported for long
	ClusterUnknown  = "unknown"  // when it reported last is not known
	// ClusterReturning: it reports again, and its dispatcher has not confirmed that nothing is
	// left there of the gangs that have failed over.
	ClusterReturning = "returning"
	ClusterReady     = "ready"
)

// StateAt returns the state of the cluster, when a watcher is silent that has not reported
// for a time.
func (c ClusterStatus) StateAt(now time.Time, silence time.Duration) string {
	switch {
	case c.Cordon != nil && c.Cordon.Left && (c.Live > 0 || c.Nodes > 0):
		return ClusterLeaving
	case c.Cordon != nil && c.Cordon.Left:
		return ClusterLeft
	case c.Cordon != nil && c.Cordon.Drain && c.Live > 0:
		return ClusterDraining
	case c.Cordon != nil && c.Cordon.Drain:
		return ClusterDrained
	case c.Cordon != nil:
		return ClusterCordoned
	case c.Nodes == 0:
		return ClusterEmpty
	case c.Silent != "" && c.WatcherHeard.IsZero():
		return ClusterUnknown
	case now.Sub(c.WatcherHeard) >= silence:
		return ClusterSilent
	case !c.FailedOver.IsZero():
		return ClusterReturning
	}
	return ClusterReady
}

// PostgresStatus is the condition of the database.
type PostgresStatus struct {
	Silent         string `json:"silent,omitempty"`
	Version        string `json:"version,omitempty"`
	Connections    int    `json:"connections,omitempty"`
	MaxConnections int    `json:"maxConnections,omitempty"`
	// Bytes is the size of Muster's database.
	Bytes int64 `json:"bytes,omitempty"`
	// Followers are the standbys of Postgres that are connected.
	Followers int `json:"followers"`
	// LagBytes is how far the last of them is behind; nil without a standby, and where
	// the login may not see it.
	LagBytes *int64 `json:"lagBytes,omitempty"`
	// Quarantined are workloads and nodes that are set aside, Undelivered messages that
	// NATS has refused as dead letters.
	Quarantined int `json:"quarantined,omitempty"`
	Undelivered int `json:"undelivered,omitempty"`
}

// NATSStatus is the condition of NATS.
type NATSStatus struct {
	Silent  string `json:"silent,omitempty"`
	Version string `json:"version,omitempty"`
	// Server is the one that the answering queue-manager is connected to, Cluster the
	// name of its cluster; Servers are those that it announces to clients.
	Server  string `json:"server,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Servers int    `json:"servers,omitempty"`
	// StoredBytes is what JetStream keeps for Muster, LimitBytes what it may; zero where
	// the server sets no limit for the account.
	StoredBytes uint64         `json:"storedBytes,omitempty"`
	LimitBytes  uint64         `json:"limitBytes,omitempty"`
	Streams     []StreamStatus `json:"streams,omitempty"`
}

// StreamStatus is the fill of a stream.
type StreamStatus struct {
	Name     string `json:"name"`
	Silent   string `json:"silent,omitempty"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// LimitBytes is what the stream may have; zero where its subjects bound it.
	LimitBytes uint64 `json:"limitBytes,omitempty"`
	// Oldest is when the first of the messages was stored.
	Oldest time.Time `json:"oldest,omitzero"`
	// Copies is on how many servers the stream is kept; Away names those of them that
	// are offline, and Leader the one that leads it, empty for a single server.
	Copies int      `json:"copies,omitempty"`
	Leader string   `json:"leader,omitempty"`
	Away   []string `json:"away,omitempty"`
}

// Status asks how Muster itself is.
func (c *Client) Status(ctx context.Context) (StatusAnswer, error) {
	return ask[StatusAnswer](ctx, c.transport, StatusSubject, struct{}{})
}
