package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/workload"
)

// Streams. Each can be wiped: submissions wait in Submit and Workload only until
// they are in Postgres; all others are rebuilt from Postgres or the cluster.
const (
	SubmitStream   = "MUSTER_SUBMIT"   // submissions to intake
	WorkloadStream = "MUSTER_WORKLOAD" // accepted submissions and cancellations to queue-manager
	EventsStream   = "MUSTER_EVENTS"   // the life of workloads, to anybody
	CapacityStream = "MUSTER_CAPACITY" // nodes and gangs as seen, last value each
	DispatchStream = "MUSTER_DISPATCH" // what shall be, to dispatchers, last value per workload
	StatusStream   = "MUSTER_STATUS"   // what dispatchers know, last value per workload
	DeadStream     = "MUSTER_DEAD"     // messages that nobody can take, with the reason
	KeptStream     = "MUSTER_KEPT"     // what WorkloadStream had, for a database that comes back older
)

// Beginnings of the names of durable consumers, one for each subject of a stream
// of work.
const (
	IntakeDurable       = "intake"        // of SubmitStream
	QueueManagerDurable = "queue-manager" // of WorkloadStream
)

// EventsKept bounds the history that late readers of lifecycle events can see.
const (
	EventsKept   = 7 * 24 * time.Hour
	dedupeWindow = 2 * time.Minute
	// shortestDedupe is the shortest window that a server takes; none it does not.
	shortestDedupe = 100 * time.Millisecond
)

// queuedBytes and eventsBytes bound the streams that do not bound themselves. A
// full queue refuses the submitter, who sees it in the acknowledgement; a full
// history drops its oldest events.
const (
	queuedBytes = 512 << 20
	eventsBytes = 512 << 20
	deadBytes   = 64 << 20
	// queuedMost bounds the messages of one queue that wait to be read, so that one
	// queue cannot take the room of all.
	queuedMost = 20_000
	// queuedMessage bounds one message of work, four times what intake accepts.
	queuedMessage = 2 << 20
	// DeadKept is how long a message is kept that nobody could take.
	DeadKept = 30 * 24 * time.Hour
	// WorkKept is how long a submission or cancellation is kept after it was taken, at
	// most keptBytes of them: so far a database may come back older without losing one.
	WorkKept  = 24 * time.Hour
	keptBytes = 512 << 20
)

// streams returns the streams as data.
func streams() []jetstream.StreamConfig {
	queue := func(name string, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: subjects, Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Duplicates: dedupeWindow,
			MaxBytes: queuedBytes, MaxMsgsPerSubject: queuedMost, DiscardNewPerSubject: true, MaxMsgSize: queuedMessage,
		}
	}
	lastValue := func(name, subject string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: []string{subject}, MaxMsgsPerSubject: 1,
			Storage: jetstream.FileStorage, Duplicates: dedupeWindow, AllowMsgTTL: true,
		}
	}
	// undeduplicated keeps the server from dropping messages whose Nats-Msg-Id it has
	// seen: it would drop those of one tenant for another's.
	undeduplicated := func(c jetstream.StreamConfig) jetstream.StreamConfig {
		c.Duplicates = shortestDedupe
		return c
	}
	// direct lets the last value of a subject be read with a right to that subject.
	direct := func(c jetstream.StreamConfig) jetstream.StreamConfig {
		c.AllowDirect = true
		return c
	}
	return []jetstream.StreamConfig{
		undeduplicated(queue(SubmitStream, "muster.submit.*", "muster.submit.*.*")),
		republished(queue(WorkloadStream, WorkloadSubject("*")), WorkloadSubject("*"), keptSubject("{{wildcard(1)}}")),
		{
			Name: KeptStream, Subjects: []string{keptSubject("*")}, MaxAge: WorkKept, Storage: jetstream.FileStorage,
			Duplicates: dedupeWindow, Discard: jetstream.DiscardOld, MaxBytes: keptBytes,
		},
		{
			Name: EventsStream, Subjects: []string{"muster.events.*.*"}, MaxAge: EventsKept,
			Storage: jetstream.FileStorage, Duplicates: dedupeWindow,
			Discard: jetstream.DiscardOld, MaxBytes: eventsBytes,
			AllowDirect: true, // of the last event of a workload, by its subject: LastEventSubject
		},
		direct(lastValue(CapacityStream, "muster.capacity.>")),
		lastValue(DispatchStream, "muster.dispatch.*.*"),
		direct(lastValue(StatusStream, "muster.status.*.*")),
		{
			Name: DeadStream, Subjects: []string{DeadFilter}, MaxAge: DeadKept,
			Storage: jetstream.FileStorage, Duplicates: dedupeWindow, Discard: jetstream.DiscardOld, MaxBytes: deadBytes,
		},
	}
}

// republished has the server put each message that the stream stores on another
// subject, too, where another stream keeps it.
func republished(c jetstream.StreamConfig, from, to string) jetstream.StreamConfig {
	c.RePublish = &jetstream.RePublish{Source: from, Destination: to}
	return c
}

// EnsureStreams creates the streams that are missing and leaves the others as
// they are. Any number of services may do it at once.
func (b *Bus) EnsureStreams(ctx context.Context) error {
	for _, config := range streams() {
		config.Replicas = b.replicas
		_, err := b.js.CreateStream(ctx, config)
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			b.storage.note(madeStreams, err, time.Now())
			return fmt.Errorf("create stream %s: %w", config.Name, explained(err))
		}
	}
	b.storage.note(madeStreams, nil, time.Now())
	return nil
}

// AwaitStreams is EnsureStreams for a service that starts: NATS servers that have
// just started, or lost one of them, cannot create streams until they agree on a
// leader. That, room on the server (see Storage), and every other refusal, as of a
// user whose rights are yet to come, is waited for as long as it takes, and logged.
// The error is that of the last try when ctx ends.
func (b *Bus) AwaitStreams(ctx context.Context) error {
	refused := awaitAgain
	for {
		err := b.EnsureStreams(ctx)
		again := awaitAgain
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case withoutRoom(err):
			again = awaitRoom
		case !withoutLeader(err):
			again = refused
			refused = min(2*refused, awaitMost)
		}
		b.logger.Warn("NATS cannot create streams yet", zap.Error(err), zap.Duration("again after", again))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again):
		}
	}
}

const (
	awaitAgain = 250 * time.Millisecond
	awaitRoom  = 5 * time.Second
	awaitMost  = 30 * time.Second
	// madeStreams names the making of streams among what NATS stores.
	madeStreams = "the streams"
	// notAvailable is the server's JSClusterNotAvailErr.
	notAvailable jetstream.ErrorCode = 10008
)

// explained says what to do about a server without room for the streams.
func explained(err error) error {
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.ErrorCode == storageResources {
		return fmt.Errorf("NATS' max_file_store is smaller than what Muster's streams may take: set it to %d GiB or more, on a disk that has as much, and restart NATS: %w",
			(StoreNeeded()+1<<30-1)>>30, err)
	}
	return err
}

// withoutLeader tells the errors of servers that have not agreed on a leader.
func withoutLeader(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) ||
		errors.As(err, &refused) && refused.ErrorCode == notAvailable
}

// ConfigureStreams creates the streams that are missing and brings the others to
// the configuration of this version. Only the leader does it: two versions that
// run side by side would otherwise undo each other's configuration.
//
// A stream whose files are gone, after a deletion under load or by somebody's hand,
// is deleted and made again: the server takes messages for it for a while, but no
// consumer, no change, and after a restart it is not there. It returns the names of
// those; what they had is to be published again.
func (b *Bus) ConfigureStreams(ctx context.Context) (remade []string, err error) {
	for _, config := range streams() {
		config.Replicas = b.replicas
		if config.Replicas == 0 {
			present, err := b.js.Stream(ctx, config.Name)
			switch {
			case err == nil:
				config.Replicas = present.CachedInfo().Config.Replicas
			case !errors.Is(err, jetstream.ErrStreamNotFound):
				return remade, fmt.Errorf("look up stream %s: %w", config.Name, err)
			}
		}
		_, err := b.js.CreateOrUpdateStream(ctx, config)
		if withoutFiles(err) {
			b.logger.Error("stream has no files any more: making it again", zap.String("stream", config.Name), zap.Error(err))
			if err = b.js.DeleteStream(ctx, config.Name); err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
				_, err = b.js.CreateStream(ctx, config)
				remade = append(remade, config.Name)
			}
		}
		if err != nil {
			b.storage.note(madeStreams, err, time.Now())
			return remade, fmt.Errorf("create or update stream %s with %d replicas: %w", config.Name, max(config.Replicas, 1), explained(err))
		}
	}
	b.storage.note(madeStreams, nil, time.Now())
	return remade, nil
}

// MaxReplicas is the largest number of servers that keep a stream.
const MaxReplicas = 5

// ValidReplicas reports whether so many servers can keep a stream, or 0, which
// leaves it to the server.
func ValidReplicas(replicas int) bool { return replicas >= 0 && replicas <= MaxReplicas }

// Streams lists the names of all streams.
func Streams() []string {
	var names []string
	for _, config := range streams() {
		names = append(names, config.Name)
	}
	return names
}

// SubmitSubject takes submissions for a queue.
func SubmitSubject(queue string) string { return "muster.submit." + queue }

// SubmitSubjectAs takes submissions of a user of NATS for a queue. The user's
// rights name it, so who publishes there is that user, whatever the message says.
func SubmitSubjectAs(queue, user string) string { return SubmitSubject(queue) + "." + user }

// SubmittedBy reads queue and user of a submit subject; the user is empty where
// the subject does not say.
func SubmittedBy(subject string) (queue, user string) {
	queue, user, _ = strings.Cut(strings.TrimPrefix(subject, SubmitSubject("")), ".")
	return queue, user
}

// WorkloadSubject carries accepted submissions and cancellations of a queue.
func WorkloadSubject(queue string) string { return "muster.workload." + queue }

// keptSubject carries once more what a queue's WorkloadSubject carried.
func keptSubject(queue string) string { return "muster.kept." + queue }

// KeptFilter matches all submissions and cancellations that are kept.
func KeptFilter() string { return keptSubject("*") }

// EventsFilter matches the life of all workloads.
func EventsFilter() string { return "muster.events.*.*" }

// EventsSubject carries the life of one workload.
func EventsSubject(queue string, id workload.ID) string {
	return "muster.events." + queue + "." + token(string(id))
}

// LastEventSubject answers a request with the last event of a workload. Unlike a
// consumer it can be allowed for one queue only.
func LastEventSubject(queue string, id workload.ID) string {
	return "$JS.API.DIRECT.GET." + EventsStream + "." + EventsSubject(queue, id)
}

// NodeSubject holds the last observation of a node.
func NodeSubject(cluster, node string) string {
	return "muster.capacity." + cluster + ".node." + token(node)
}

// GangSubject holds the last observation of a workload's pods.
func GangSubject(cluster string, id workload.ID) string {
	return "muster.capacity." + cluster + ".gang." + token(string(id))
}

// SyncedSubject holds the last full list of what a cluster's watcher sees.
func SyncedSubject(cluster string) string { return "muster.capacity." + cluster + ".synced" }

// CapacityFilter matches all observations of one cluster, or of all with "*".
func CapacityFilter(cluster string) string { return "muster.capacity." + cluster + ".>" }

// DispatchSubject holds what shall be true of a workload.
func DispatchSubject(cluster string, id workload.ID) string {
	return "muster.dispatch." + cluster + "." + token(string(id))
}

// DispatchFilter matches all commands of one cluster.
func DispatchFilter(cluster string) string { return "muster.dispatch." + cluster + ".*" }

// StatusSubject holds what the dispatcher knows of a workload.
func StatusSubject(cluster string, id workload.ID) string {
	return "muster.status." + cluster + "." + token(string(id))
}

// AskSubject carries questions to the watcher and the dispatcher of a cluster. It is
// of no stream: who asks does so again until there is an answer.
func AskSubject(cluster string) string { return "muster.ask." + cluster }

// StatusFilter matches the statuses of all clusters.
func StatusFilter() string { return "muster.status.*.*" }

// ClusterStatusFilter matches the statuses of one cluster.
func ClusterStatusFilter(cluster string) string { return "muster.status." + cluster + ".*" }

// DeadFilter matches all messages that nobody could take.
const DeadFilter = "muster.dead.>"

// DeadSubject holds a message of the given subject that nobody could take.
func DeadSubject(subject string) string {
	return "muster.dead." + strings.TrimPrefix(subject, "muster.")
}

// token makes one subject token of a Kubernetes name or an id. Neither may
// contain an underscore, so no two names get the same token.
func token(name string) string {
	if name == "" {
		return "_"
	}
	return strings.ReplaceAll(name, ".", "_")
}
