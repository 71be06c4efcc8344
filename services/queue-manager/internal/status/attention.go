package status

import (
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
)

// nearlyFull is the part of a limit, in percent, from which a person has to look. Streams
// of history drop their oldest messages, so they may be full.
const nearlyFull = 75

// inactiveNamed is how many inactive ClusterQueues are named one by one.
const inactiveNamed = 5

const (
	// silentAfter is how long a part that has something to report reports nothing before it is
	// named. It is longer than a standby takes to replace a holder of the Lease.
	silentAfter = 45 * time.Second
	// submissionsAfter is how long the oldest submission waits before intake is named.
	submissionsAfter = 30 * time.Second
)

// lines are what a person has to look at, each with what it is about.
type lines struct {
	texts []string
	about []query.About
}

// add adds a line about one of Muster's own parts.
func (l *lines) add(format string, args ...any) { l.of(query.About{})(format, args...) }

// of adds lines about something.
func (l *lines) of(about query.About) func(format string, args ...any) {
	return func(format string, args ...any) {
		l.texts, l.about = append(l.texts, fmt.Sprintf(format, args...)), append(l.about, about)
	}
}

// attention lists what a person has to look at, the most serious first: what keeps all from being
// admitted, then stuck gangs, silent clusters, dead letters, misplaced pods, and the rest.
func attention(a query.StatusAnswer) ([]string, []query.About) {
	var found lines
	partsAttention(a, &found)
	gangsAttention(a.Stuck, "gangs are stuck", a.At, &found)
	for _, c := range a.Clusters {
		clusterAttention(c, a.At, found.of(query.About{Cluster: c.Name}))
	}
	for _, s := range a.NATS.Streams {
		if s.Name == bus.DeadStream && s.Messages > 0 {
			found.of(query.About{DeadLetters: true})("%d messages could not be processed: see `muster get dead-letters`", s.Messages)
		}
	}
	gangsAttention(a.Misplaced, "gangs have misplaced pods", a.At, &found)
	restAttention(a, found.add)
	return found.texts, found.about
}

// partsAttention names what keeps all from being admitted.
func partsAttention(a query.StatusAnswer, found *lines) {
	if a.Postgres.Silent != "" {
		found.add("Postgres is silent (%s): nothing is admitted; check the server and queue-manager's database URL", a.Postgres.Silent)
	}
	if a.Leader != nil && !a.Leader.Leads {
		found.add("no queue-manager leads; the last leader was %s: see the log of queue-manager for why its terms end", a.Leader.Holder)
	}
	if a.NATS.Silent != "" {
		found.add("NATS does not say what it stores (%s): check its JetStream and the rights of queue-manager in accounts.conf", a.NATS.Silent)
	}
	if n := a.NATS; n.LimitBytes > 0 && n.StoredBytes*100 >= n.LimitBytes*nearlyFull {
		found.add("JetStream is %d%% full: raise its limit, or free disk space", n.StoredBytes*100/n.LimitBytes)
	}
	for _, s := range a.NATS.Streams {
		streamAttention(s, a.At, found.add)
	}
}

// restAttention names what can wait.
func restAttention(a query.StatusAnswer, add func(format string, args ...any)) {
	if p := a.Postgres; p.MaxConnections > 0 && p.Connections*100 >= p.MaxConnections*nearlyFull {
		add("Postgres has %d of at most %d connections: raise max_connections, or find who has them", p.Connections, p.MaxConnections)
	}
	if n := a.Postgres.Quarantined; n > 0 {
		add("%d workloads or nodes are in quarantine: read their reason, then `queue-manager unquarantine NAME`", n)
	}
	if n := a.Postgres.Undelivered; n > 0 {
		add("%d messages are in the table undelivered: NATS refuses to keep them as dead letters", n)
	}
	for _, b := range a.Budgets {
		add("%s; it warns, and nothing is held", b)
	}
	for _, q := range a.Inactive[:min(len(a.Inactive), inactiveNamed)] {
		add("%s (waiting workloads: %d)", q.Why, q.Waiting)
	}
	if more := len(a.Inactive) - inactiveNamed; more > 0 {
		add("workloads wait for %d more ClusterQueues that are inactive: see `muster get clusterqueues`", more)
	}
}

// gangsAttention names the first of some gangs with their reasons, and counts the others.
func gangsAttention(of query.GangsToSee, what string, now time.Time, found *lines) {
	for _, g := range of.Gangs {
		text := fmt.Sprintf("workload %s/%s of queue %s is %s", g.Namespace, g.Name, g.Queue, g.Phase)
		if !g.Since.IsZero() {
			text += " for " + now.Sub(g.Since).Truncate(time.Minute).String()
		}
		if g.Why != "" {
			text += ": " + shortened(g.Why)
		}
		found.of(query.About{Workload: g.ID})("%s; see `muster explain %s -n %s`", text, g.Name, g.Namespace)
	}
	if more := of.InAll - len(of.Gangs); more > 0 {
		found.add("%d more %s: see `muster get workloads -o wide`", more, what)
	}
}

// longestWhy bounds the reason of a gang in a line, in bytes.
const longestWhy = 200

func shortened(text string) string {
	if len(text) <= longestWhy {
		return text
	}
	return strings.ToValidUTF8(text[:longestWhy], "") + "..."
}

// clusterAttention names what is silent of a cluster, or out of order. Its watcher and
// dispatcher repeat what they know every few seconds, the dispatcher as long as it has
// workloads: before the first of them it has nothing to report.
func clusterAttention(c query.ClusterStatus, now time.Time, add func(format string, args ...any)) {
	if c.Nodes > 0 && c.ReadyNodes == 0 {
		add("no node of cluster %s is ready: check its API server and nodes", c.Name)
	}
	if c.Silent != "" {
		add("when the watcher and dispatcher of cluster %s reported last is not known: %s", c.Name, c.Silent)
	}
	if silent := now.Sub(c.WatcherHeard); c.Nodes > 0 && !c.WatcherHeard.IsZero() && silent >= silentAfter {
		add("the capacity-watcher of cluster %s has been silent for %s: what happens to its %s is not seen; check that it runs and reaches NATS and its API server",
			c.Name, silent.Truncate(time.Second), counted(c.Nodes, "node"))
	}
	if !c.FailedOver.IsZero() && now.Sub(c.WatcherHeard) < silentAfter && now.Sub(c.DispatcherHeard) >= silentAfter {
		add("cluster %s is back after its gangs failed over, and gets none until its dispatcher confirms that nothing is left there; check that it runs and reaches NATS and its API server", c.Name)
	}
	since := c.LiveSince
	if c.DispatcherHeard.After(since) {
		since = c.DispatcherHeard
	}
	known := c.Silent == "" || !c.DispatcherHeard.IsZero()
	if silent := now.Sub(since); known && c.Live > 0 && !since.IsZero() && silent >= silentAfter {
		add("the dispatcher of cluster %s has been silent for %s: %s; check that it runs and reaches NATS and its API server",
			c.Name, silent.Truncate(time.Second), waitFor(c.Live))
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func waitFor(workloads int) string {
	if workloads == 1 {
		return "1 workload waits for it"
	}
	return fmt.Sprintf("%d workloads wait for it", workloads)
}

func streamAttention(s query.StreamStatus, now time.Time, add func(format string, args ...any)) {
	switch {
	case s.Silent != "":
		add("stream %s is silent (%s): check the disk of NATS", s.Name, s.Silent)
	case len(s.Away) > 0:
		add("stream %s has copies on servers that are offline: %s", s.Name, strings.Join(s.Away, ", "))
	case s.Copies > 1 && s.Leader == "":
		add("stream %s has no leader: most of its %d servers must run", s.Name, s.Copies)
	case (s.Name == bus.SubmitStream || s.Name == bus.WorkloadStream) && s.LimitBytes > 0 && s.Bytes*100 >= s.LimitBytes*nearlyFull:
		add("stream %s is %d%% full, and refuses submissions when it is full: see whether its reader runs", s.Name, s.Bytes*100/s.LimitBytes)
	}
	if waits := now.Sub(s.Oldest); s.Name == bus.SubmitStream && s.Messages > 0 && !s.Oldest.IsZero() && waits >= submissionsAfter {
		add("intake has not read %s for %s: check that it runs and reaches NATS; its log names those that it tries again",
			counted(int(s.Messages), "submission"), waits.Truncate(time.Second))
	}
}
