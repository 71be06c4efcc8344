package status

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
)

// nearlyFull is the part of a limit, in percent, from which a person has to look. Streams
// of history drop their oldest messages, so they may be full.
const nearlyFull = 75

// inactiveNamed is how many inactive ClusterQueues are named one by one.
const inactiveNamed = 5

// attention lists what a person has to look at, the most serious first.
func attention(a query.StatusAnswer) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if a.Postgres.Silent != "" {
		add("Postgres is silent (%s): nothing is admitted; check the server and queue-manager's database URL", a.Postgres.Silent)
	}
	if a.Leader != nil && !a.Leader.Leads {
		add("no queue-manager leads; the last leader was %s: see the log of queue-manager for why its terms end", a.Leader.Holder)
	}
	if a.NATS.Silent != "" {
		add("NATS does not say what it stores (%s): check its JetStream and the rights of queue-manager in accounts.conf", a.NATS.Silent)
	}
	if n := a.NATS; n.LimitBytes > 0 && n.StoredBytes*100 >= n.LimitBytes*nearlyFull {
		add("JetStream is %d%% full: raise its limit, or free disk space", n.StoredBytes*100/n.LimitBytes)
	}
	for _, s := range a.NATS.Streams {
		streamAttention(s, add)
	}
	if p := a.Postgres; p.MaxConnections > 0 && p.Connections*100 >= p.MaxConnections*nearlyFull {
		add("Postgres has %d of at most %d connections: raise max_connections, or find who has them", p.Connections, p.MaxConnections)
	}
	if n := a.Postgres.Quarantined; n > 0 {
		add("%d workloads or nodes are in quarantine: read their reason, then `queue-manager unquarantine NAME`", n)
	}
	if n := a.Postgres.Undelivered; n > 0 {
		add("%d messages are in the table undelivered: NATS refuses to keep them as dead letters", n)
	}
	for _, q := range a.Inactive[:min(len(a.Inactive), inactiveNamed)] {
		add("%s (waiting workloads: %d)", q.Why, q.Waiting)
	}
	if more := len(a.Inactive) - inactiveNamed; more > 0 {
		add("workloads wait for %d more ClusterQueues that are inactive: see `muster get clusterqueues`", more)
	}
	for _, c := range a.Clusters {
		if c.Nodes > 0 && c.ReadyNodes == 0 {
			add("no node of cluster %s is ready: check its API server and nodes", c.Name)
		}
	}
	return found
}

func streamAttention(s query.StreamStatus, add func(format string, args ...any)) {
	switch {
	case s.Silent != "":
		add("stream %s is silent (%s): check the disk of NATS", s.Name, s.Silent)
	case len(s.Away) > 0:
		add("stream %s has copies on servers that are offline: %s", s.Name, strings.Join(s.Away, ", "))
	case s.Copies > 1 && s.Leader == "":
		add("stream %s has no leader: most of its %d servers must run", s.Name, s.Copies)
	case s.Name == bus.DeadStream && s.Messages > 0:
		add("%d messages could not be processed: see `muster get dead-letters`", s.Messages)
	case (s.Name == bus.SubmitStream || s.Name == bus.WorkloadStream) && s.LimitBytes > 0 && s.Bytes*100 >= s.LimitBytes*nearlyFull:
		add("stream %s is %d%% full, and refuses submissions when it is full: see whether its reader runs", s.Name, s.Bytes*100/s.LimitBytes)
	}
}
