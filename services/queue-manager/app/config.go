package app

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Config is queue-manager's settings.
type Config struct {
	NATS        bus.Settings
	DatabaseURL string
	// DatabaseURLFile holds the URL in a file, for secrets; it is read at start.
	DatabaseURLFile string
	// QueuesFile names the queues; see Queues for its format.
	QueuesFile string
	// notes name what of the queues file does nothing, or not what may have been
	// meant.
	notes []string
	// Queues are used when QueuesFile is empty.
	Queues []Queue
	// builtIn: no queues are named, so there are the DefaultQueues.
	builtIn bool
	// Policy is read with the queues: quota, cohorts and the rest.
	Policy    quota.Config
	NodeGrace time.Duration
	// ClusterSilence is how long a capacity-watcher may be silent before its cluster gets
	// no new gangs; zero for the default.
	ClusterSilence time.Duration
	// CheckStreams is how often NATS' streams are compared with the ledger.
	CheckStreams time.Duration
	// LeaderTimeout is how long a leader may send no heartbeat before a standby takes
	// over.
	LeaderTimeout time.Duration
	// AcceptNewDatabase leads with a new database even where NATS has commands of workloads
	// that run; they are removed.
	AcceptNewDatabase bool
	// AcceptOldPrimary leads on an earlier timeline of Postgres than is noted in NATS.
	AcceptOldPrimary bool
	// Timeouts of statements, locks, idle transactions and dead peers.
	Timeouts store.Timeouts
	// MaxLive and MaxLivePerQueue bound the workloads that have not ended, and with
	// them the memory; what is submitted beyond is refused until there is room.
	MaxLive, MaxLivePerQueue int
	// EstimateInterval is the least time between two estimates of when waiting workloads
	// start; 0 makes none.
	EstimateInterval time.Duration
	// BudgetInterval is how often what is used of budgets is summed.
	BudgetInterval time.Duration
	// KeepHistory and KeepArchive are how long steps of lives and finished
	// workloads are kept, in whole days of UTC.
	KeepHistory, KeepArchive time.Duration
	// KeepDecisions is how long decisions can be replayed; LongestTerm is when a
	// leader gives way, because a replay begins where a term began.
	KeepDecisions, LongestTerm time.Duration
}

// Queue is a queue as configured.
type Queue = queuesfile.Queue

// DefaultQueues are there when nothing is configured: one queue for the
// namespace "default".
func DefaultQueues() []Queue {
	return []Queue{{Name: "default", Namespaces: []string{"default"}, Strategy: quota.BestEffortFIFO}}
}

// Describe implements service.Describer.
func (c *Config) Describe() string {
	return `queue-manager keeps queues, workloads, nodes and reservations in Postgres and admits gangs.

  queue-manager [flags]          run the service
  queue-manager migrate [flags]  bring the schema of the database up to date and exit; needs the URL of the role
                                 that owns the tables, not of the service's
  queue-manager unquarantine NAME... [flags]
                                 take workloads (ids) and nodes (CLUSTER/NODE) out of quarantine
  queue-manager shadow [flags]   repeat the decisions of the one that leads, and count those that come out differently

Flags:`
}

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	c.NATS.Register(flags)
	flags.StringVar(&c.DatabaseURL, "database-url", "", "`URL` of the Postgres database; put a password into the environment or a file")
	flags.StringVar(&c.DatabaseURLFile, "database-url-file", "", "`file` that holds the database URL")
	flags.StringVar(&c.QueuesFile, "queues", "", "YAML `file` with the queues; without it there is the queue \"default\" for the namespace \"default\"")
	flags.DurationVar(&c.CheckStreams, "check-streams", defaultCheckStreams, "how often the streams of NATS are compared with the ledger and lost messages are published again; every start and reconnection does it, too")
	flags.BoolVar(&c.AcceptNewDatabase, "accept-new-database", false, "lead with a new, empty database although NATS has commands of running workloads; these are removed")
	flags.BoolVar(&c.AcceptOldPrimary, "accept-old-primary", false, "lead with a Postgres server of an earlier timeline than the last one, as after the restore of a backup from before a promotion")
	flags.DurationVar(&c.LeaderTimeout, "leader-timeout", defaultLeaderTimeout, "leader heartbeat timeout, after which a standby takes over; at least 1s")
	defaults := store.DefaultTimeouts()
	flags.DurationVar(&c.Timeouts.Statement, "statement-timeout", defaults.Statement, "statement timeout in Postgres, except for loading the state at a start")
	flags.DurationVar(&c.Timeouts.Lock, "lock-timeout", defaults.Lock, "lock timeout in Postgres")
	flags.DurationVar(&c.Timeouts.Idle, "idle-transaction-timeout", defaults.Idle, "idle-in-transaction timeout")
	flags.DurationVar(&c.Timeouts.Peer, "peer-timeout", defaults.Peer, "time after which an unanswered connection between queue-manager and Postgres is closed")
	flags.IntVar(&c.MaxLive, "max-live", defaultMaxLive, "maximum of live workloads; further submissions are rejected with the reason Full and can be repeated later")
	flags.IntVar(&c.MaxLivePerQueue, "max-live-per-queue", defaultMaxLivePerQueue, "maximum of live workloads of one queue, so that no queue can use up --max-live")
	flags.DurationVar(&c.EstimateInterval, "estimate-interval", defaultEstimateInterval, "minimum time between two estimates of when waiting workloads start; 0 disables estimates")
	flags.DurationVar(&c.BudgetInterval, "budget-interval", defaultBudgetInterval, "how often budgets of queues are checked; at least 100ms")
	flags.DurationVar(&c.KeepHistory, "keep-history", defaultKeep, "how long the history of workloads is kept")
	flags.DurationVar(&c.KeepArchive, "keep-archive", defaultKeep, "how long finished workloads are kept; until then a submission with the same source and id is the same submission")
	flags.DurationVar(&c.KeepDecisions, "keep-decisions", defaultKeepDecisions, "how long decisions can be replayed (muster replay)")
	flags.DurationVar(&c.LongestTerm, "longest-term", defaultLongestTerm, "longest term of a leader; then a standby takes over or, without one, the leader loads its state again. The decision log that a replay needs grows with the term")
	flags.DurationVar(&c.NodeGrace, "node-grace", time.Minute, "how long a node may be not ready before gangs on it are evicted")
	flags.DurationVar(&c.ClusterSilence, "cluster-silence", defaultClusterSilence, "how long the capacity-watcher of a cluster may be silent before the cluster gets no new gangs; those that run there stay. At least 10s")
}

// defaultCheckStreams is every few minutes.
const defaultCheckStreams = 5 * time.Minute

const (
	defaultLeaderTimeout = 2 * time.Second
	// defaultEstimateInterval has an estimate follow a change before people look again.
	defaultEstimateInterval = 10 * time.Second
	defaultBudgetInterval   = 15 * time.Second
	defaultKeep             = 30 * 24 * time.Hour
	defaultKeepDecisions    = 7 * 24 * time.Hour
	defaultLongestTerm      = 24 * time.Hour
	// defaultClusterSilence is longer than a standby of capacity-watcher takes to replace
	// the one that acts.
	defaultClusterSilence = 45 * time.Second
	// leastClusterSilence is twice the period in which a capacity-watcher reports.
	leastClusterSilence = 10 * time.Second

	leastBudgetInterval = 100 * time.Millisecond

	defaultMaxLive         = 1_200_000
	defaultMaxLivePerQueue = 1_000_000
)

// Validate implements service.Config. It reads the files that the settings name.
func (c *Config) Validate() error {
	var faults []error
	if c.DatabaseURLFile != "" {
		url, err := readDatabaseURL(c.DatabaseURLFile)
		if err != nil {
			faults = append(faults, err)
		}
		c.DatabaseURL = url
	}
	if c.DatabaseURL == "" {
		faults = append(faults, errors.New("database-url: is missing; set it, MUSTER_QUEUE_MANAGER_DATABASE_URL or database-url-file"))
	}
	faults = append(faults, c.NATS.Validate())
	faults = append(faults, c.validateLedger())
	if c.CheckStreams == 0 {
		c.CheckStreams = defaultCheckStreams
	}
	if c.CheckStreams < time.Second {
		faults = append(faults, fmt.Errorf("check-streams: %s: want at least 1s", c.CheckStreams))
	}
	if c.EstimateInterval < 0 || c.EstimateInterval > 0 && c.EstimateInterval < time.Second {
		faults = append(faults, fmt.Errorf("estimate-interval: %s: want at least 1s, or 0 for no estimates", c.EstimateInterval))
	}
	if c.BudgetInterval == 0 {
		c.BudgetInterval = defaultBudgetInterval
	}
	if c.BudgetInterval < leastBudgetInterval {
		faults = append(faults, fmt.Errorf("budget-interval: %s: want at least %s", c.BudgetInterval, leastBudgetInterval))
	}
	if c.ClusterSilence == 0 {
		c.ClusterSilence = defaultClusterSilence
	}
	if c.ClusterSilence < leastClusterSilence {
		faults = append(faults, fmt.Errorf("cluster-silence: %s: want at least %s", c.ClusterSilence, leastClusterSilence))
	}
	if c.NodeGrace < 0 {
		faults = append(faults, fmt.Errorf("node-grace: %s: want a positive duration, or 0", c.NodeGrace))
	}
	faults = append(faults, c.validateQueues())
	return errors.Join(faults...)
}

// readDatabaseURL reads the URL that a file holds.
func readDatabaseURL(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("database-url-file: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// validateLedger checks what has to do with Postgres and the leadership, and fills
// in what is not set.
func (c *Config) validateLedger() error {
	var faults []error
	if c.MaxLive == 0 {
		c.MaxLive = defaultMaxLive
	}
	if c.MaxLivePerQueue == 0 {
		c.MaxLivePerQueue = defaultMaxLivePerQueue
	}
	if c.MaxLive < 0 || c.MaxLivePerQueue < 0 {
		faults = append(faults, fmt.Errorf("max-live: %d, max-live-per-queue: %d: want at least 1", c.MaxLive, c.MaxLivePerQueue))
	}
	defaults := store.DefaultTimeouts()
	for _, setting := range []struct {
		name           string
		value          *time.Duration
		usual, atLeast time.Duration
	}{
		{"leader-timeout", &c.LeaderTimeout, defaultLeaderTimeout, time.Second},
		{"statement-timeout", &c.Timeouts.Statement, defaults.Statement, time.Second},
		{"lock-timeout", &c.Timeouts.Lock, defaults.Lock, 100 * time.Millisecond},
		{"idle-transaction-timeout", &c.Timeouts.Idle, defaults.Idle, time.Second},
		{"peer-timeout", &c.Timeouts.Peer, defaults.Peer, time.Second},
		{"keep-history", &c.KeepHistory, defaultKeep, 24 * time.Hour},
		{"keep-archive", &c.KeepArchive, defaultKeep, 24 * time.Hour},
		{"keep-decisions", &c.KeepDecisions, defaultKeepDecisions, 24 * time.Hour},
		{"longest-term", &c.LongestTerm, defaultLongestTerm, time.Second},
	} {
		if *setting.value == 0 {
			*setting.value = setting.usual
		}
		if *setting.value < setting.atLeast {
			faults = append(faults, fmt.Errorf("%s: %s: want at least %s", setting.name, *setting.value, setting.atLeast))
		}
	}
	return errors.Join(faults...)
}
