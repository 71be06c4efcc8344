package app

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kueue"
	"muster.dev/muster/pkg/podpolicy"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Config is queue-manager's settings.
type Config struct {
	NATSURL         string
	NATSCredentials string
	// NATSReplicas is on how many servers of a NATS cluster each stream is kept;
	// 0 leaves it as it is.
	NATSReplicas int
	DatabaseURL  string
	// DatabaseURLFile holds the URL in a file, for secrets; it is read at start.
	DatabaseURLFile string
	// QueuesFile names the queues; see Queues for its format.
	QueuesFile string
	// notes name what of the queues file does nothing.
	notes []string
	// Queues are used when QueuesFile is empty.
	Queues []Queue
	// Policy is read with the queues: quota, cohorts and the rest.
	Policy    quota.Config
	NodeGrace time.Duration
	// CheckStreams is how often NATS' streams are compared with the ledger.
	CheckStreams time.Duration
	// LeaderTimeout is how long a leader may show no life before a standby takes
	// over.
	LeaderTimeout time.Duration
	// Timeouts of statements, locks, idle transactions and dead peers.
	Timeouts store.Timeouts
	// MaxLive and MaxLivePerQueue bound the workloads that have not ended, and with
	// them the memory; what is submitted beyond is refused until there is room.
	MaxLive, MaxLivePerQueue int
	// KeepHistory and KeepArchive are how long steps of lives and finished
	// workloads are kept, in whole days of UTC.
	KeepHistory, KeepArchive time.Duration
}

// Queue is a queue as configured, an element of `queues` in the queues file.
type Queue struct {
	Name string `json:"name"`
	// Namespaces that the queue's workloads may use; the first is the default.
	Namespaces []string `json:"namespaces"`
	// Strategy is BestEffortFIFO (the default), StrictFIFO or Backfill. For a queue
	// with quota the clusterQueue of its name says it.
	Strategy string `json:"strategy,omitempty"`
	// Rules of its workloads' lives; what is not set is at its default.
	Rules workload.Rules `json:"life,omitzero"`
	// PodPolicy is what pod templates may contain.
	PodPolicy workload.PodPolicy `json:"podPolicy,omitzero"`
}

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

Flags:`
}

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	flags.StringVar(&c.NATSURL, "nats-url", "nats://127.0.0.1:4222", "`URL` of the NATS server")
	flags.StringVar(&c.NATSCredentials, "nats-credentials", "", "`file` with NATS credentials: .creds, or the seed of an nkey")
	flags.IntVar(&c.NATSReplicas, "nats-replicas", 0, "on how many servers of a NATS cluster each stream is kept; 0 leaves it as it is")
	flags.StringVar(&c.DatabaseURL, "database-url", "", "`URL` of the Postgres database; a password belongs into the environment or a file")
	flags.StringVar(&c.DatabaseURLFile, "database-url-file", "", "`file` that holds the database URL")
	flags.StringVar(&c.QueuesFile, "queues", "", "YAML `file` with the queues; without it there is the queue \"default\" for the namespace \"default\"")
	flags.DurationVar(&c.CheckStreams, "check-streams", defaultCheckStreams, "how often NATS' streams are compared with the ledger, to publish anew what they lost; it is done at each start and reconnection, too")
	flags.DurationVar(&c.LeaderTimeout, "leader-timeout", defaultLeaderTimeout, "how long a leader may show no life before a standby takes over; at least 1s")
	defaults := store.DefaultTimeouts()
	flags.DurationVar(&c.Timeouts.Statement, "statement-timeout", defaults.Statement, "longest statement in Postgres, but for the reading of everything at a start")
	flags.DurationVar(&c.Timeouts.Lock, "lock-timeout", defaults.Lock, "longest wait for a lock in Postgres")
	flags.DurationVar(&c.Timeouts.Idle, "idle-transaction-timeout", defaults.Idle, "when Postgres ends a transaction that nobody goes on with")
	flags.DurationVar(&c.Timeouts.Peer, "peer-timeout", defaults.Peer, "when either side gives up a connection on which the other does not answer")
	flags.IntVar(&c.MaxLive, "max-live", defaultMaxLive, "most workloads that have not ended; what is submitted beyond is refused with the reason Full, to be tried again later")
	flags.IntVar(&c.MaxLivePerQueue, "max-live-per-queue", defaultMaxLivePerQueue, "the same for each queue, so that one cannot take the room of all")
	flags.DurationVar(&c.KeepHistory, "keep-history", defaultKeep, "how long the steps of workloads' lives are kept")
	flags.DurationVar(&c.KeepArchive, "keep-archive", defaultKeep, "how long finished workloads are kept; so long the same source and id are the same submission")
	flags.DurationVar(&c.NodeGrace, "node-grace", time.Minute, "how long a node may be not ready before gangs on it are evicted")
}

// defaultCheckStreams is every few minutes.
const defaultCheckStreams = 5 * time.Minute

const (
	defaultLeaderTimeout = 2 * time.Second
	defaultKeep          = 30 * 24 * time.Hour

	defaultMaxLive         = 1_200_000
	defaultMaxLivePerQueue = 1_000_000
)

// Validate implements service.Config. It reads the files that the settings name.
func (c *Config) Validate() error {
	var faults []error
	if c.DatabaseURLFile != "" {
		content, err := os.ReadFile(c.DatabaseURLFile)
		if err != nil {
			faults = append(faults, fmt.Errorf("database-url-file: %w", err))
		}
		c.DatabaseURL = strings.TrimSpace(string(content))
	}
	if c.DatabaseURL == "" {
		faults = append(faults, errors.New("database-url: is missing; set it, MUSTER_QUEUE_MANAGER_DATABASE_URL or database-url-file"))
	}
	if c.NATSURL == "" {
		faults = append(faults, errors.New("nats-url: is missing"))
	}
	if !bus.ValidReplicas(c.NATSReplicas) {
		faults = append(faults, fmt.Errorf("nats-replicas: %d: want 0 to %d", c.NATSReplicas, bus.MaxReplicas))
	}
	faults = append(faults, c.validateLedger())
	if c.CheckStreams == 0 {
		c.CheckStreams = defaultCheckStreams
	}
	if c.CheckStreams < time.Second {
		faults = append(faults, fmt.Errorf("check-streams: %s: want at least 1s", c.CheckStreams))
	}
	if c.NodeGrace < 0 {
		faults = append(faults, fmt.Errorf("node-grace: %s is negative", c.NodeGrace))
	}
	if c.QueuesFile != "" {
		queues, policy, notes, err := readQueues(c.QueuesFile)
		c.notes = notes
		if err != nil {
			faults = append(faults, fmt.Errorf("queues: %w", err))
		}
		c.Queues, c.Policy = queues, policy
	}
	if len(c.Queues) == 0 {
		c.Queues = DefaultQueues()
	}
	faults = append(faults, validateQueues(c.Queues), c.Policy.Validate())
	return errors.Join(faults...)
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

// ReadQueues reads a queues file: `queues:` with a list of Queue, and the fields
// of quota.Config; or Kueue's manifests as they are. A LocalQueue whose name no
// queue has makes one, for all namespaces that have a LocalQueue of the name.
func ReadQueues(path string) ([]Queue, quota.Config, error) {
	queues, policy, _, err := readQueues(path)
	return queues, policy, err
}

// readQueues also returns what was accepted and does nothing.
func readQueues(path string) ([]Queue, quota.Config, []string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, quota.Config{}, nil, err
	}
	queues, policy, notes, err := decodeQueues(content)
	if err != nil {
		return nil, policy, nil, fmt.Errorf("%s: %w", path, err)
	}
	return queues, policy, notes, nil
}

// decodeQueues reads the content of a queues file.
func decodeQueues(content []byte) (_ []Queue, _ quota.Config, notes []string, err error) {
	var file struct {
		Queues []Queue `json:"queues"`
		quota.Config
	}
	if kueue.Is(content) {
		file.Config, notes, err = kueue.Read(content)
	} else {
		err = yaml.UnmarshalStrict(content, &file)
	}
	if err != nil {
		return nil, file.Config, nil, err
	}
	queues := withLocalQueues(file.Queues, file.Config)
	if len(queues) == 0 {
		return nil, file.Config, nil, errors.New("names no queue")
	}
	return queues, file.Config, notes, nil
}

func withLocalQueues(queues []Queue, policy quota.Config) []Queue {
	listed := map[string]bool{}
	for _, q := range queues {
		listed[q.Name] = true
	}
	strategies := map[string]string{}
	for _, q := range policy.ClusterQueues {
		strategies[q.Name] = q.Strategy
	}
	made := map[string]int{}
	for _, l := range policy.LocalQueues {
		i, known := made[l.Name]
		switch {
		case listed[l.Name]:
		case known:
			queues[i].Namespaces = append(queues[i].Namespaces, l.Namespace)
		default:
			made[l.Name] = len(queues)
			queues = append(queues, Queue{Name: l.Name, Namespaces: []string{l.Namespace}, Strategy: strategies[l.ClusterQueue]})
		}
	}
	return queues
}

// validateQueues checks the queues and fills in their default strategy.
func validateQueues(queues []Queue) error {
	var faults []error
	seen := map[string]bool{}
	for i := range queues {
		q := &queues[i]
		if q.Strategy == "" {
			q.Strategy = quota.BestEffortFIFO
		}
		switch {
		case !bus.ValidName(q.Name):
			faults = append(faults, fmt.Errorf("queue %q: want a name of lower-case letters, digits and dashes", q.Name))
		case seen[q.Name]:
			faults = append(faults, fmt.Errorf("queue %q: is there twice", q.Name))
		case len(q.Namespaces) == 0 || slices.Contains(q.Namespaces, ""):
			faults = append(faults, fmt.Errorf("queue %q: want at least one namespace, none of them empty", q.Name))
		case !slices.Contains([]string{quota.BestEffortFIFO, quota.StrictFIFO, quota.Backfill}, q.Strategy):
			faults = append(faults, fmt.Errorf("queue %q: strategy %q: want %s, %s or %s",
				q.Name, q.Strategy, quota.BestEffortFIFO, quota.StrictFIFO, quota.Backfill))
		}
		if err := q.Rules.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("queue %q: life: %w", q.Name, err))
		}
		if err := podpolicy.Validate(q.PodPolicy); err != nil {
			faults = append(faults, fmt.Errorf("queue %q: podPolicy: %w", q.Name, err))
		}
		q.Rules.Pods = q.PodPolicy
		seen[q.Name] = true
	}
	return errors.Join(faults...)
}
