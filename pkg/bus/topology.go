package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Streams. Each can be wiped: submissions wait in Submit and Workload only until
// they are in Postgres; all others are rebuilt from Postgres or the cluster.
const (
	SubmitStream   = "MUSTER_SUBMIT"   // submissions to intake
	WorkloadStream = "MUSTER_WORKLOAD" // accepted submissions and cancellations to queue-manager
	EventsStream   = "MUSTER_EVENTS"   // the life of workloads, to anybody
	CapacityStream = "MUSTER_CAPACITY" // observed nodes and gangs, last value each
	DispatchStream = "MUSTER_DISPATCH" // what shall be, to dispatchers, and what AdmissionChecks are asked; last value per workload
	StatusStream   = "MUSTER_STATUS"   // what dispatchers know, last value per workload
	DeadStream     = "MUSTER_DEAD"     // dead letters, with the reason
	CheckedStream  = "MUSTER_CHECKED"  // the answers of AdmissionChecks to queue-manager
	KeptStream     = "MUSTER_KEPT"     // what WorkloadStream had, for a database restored to an older state
)

// Beginnings of the names of durable consumers, one for each subject of a stream
// of work.
const (
	IntakeDurable       = "intake"        // of SubmitStream
	QueueManagerDurable = "queue-manager" // of WorkloadStream and CheckedStream
)

// EventsKept bounds the history that late readers of lifecycle events can see.
const (
	EventsKept   = 7 * 24 * time.Hour
	dedupeWindow = 2 * time.Minute
)

// queuedBytes and eventsBytes bound the streams that do not bound themselves. A
// full queue refuses the submitter, who sees it in the acknowledgement; a full
// history drops its oldest events.
const (
	queuedBytes = 512 << 20
	eventsBytes = 512 << 20
	deadBytes   = 64 << 20
	// deadMost bounds the messages of one subject that are kept because no reader could
	// handle them: at the size that intake accepts, half of their room.
	deadMost = 64
	// queuedMost bounds the messages of one queue that wait to be read, so that one
	// queue cannot take the room of all.
	queuedMost = 20_000
	// queuedMessage bounds one message of work, four times what intake accepts.
	queuedMessage = 2 << 20
	// checkedMessage bounds an answer of an AdmissionCheck, checkedMost those of one that wait,
	// and checkedBytes those of all.
	checkedBytes   = 128 << 20
	checkedMost    = 256
	checkedMessage = 64 << 10
	// deadKept is how long a dead letter is kept.
	deadKept = 30 * 24 * time.Hour
	// workKept is how long a submission or cancellation is kept after it was taken, at
	// most keptBytes of them: a database restored to a state that much older loses none.
	workKept  = 24 * time.Hour
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
	// answers are small, and few wait.
	answers := func(c jetstream.StreamConfig) jetstream.StreamConfig {
		c.MaxBytes, c.MaxMsgSize, c.MaxMsgsPerSubject = checkedBytes, checkedMessage, checkedMost
		return c
	}
	lastValue := func(name string, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: subjects, MaxMsgsPerSubject: 1,
			Storage: jetstream.FileStorage, Duplicates: dedupeWindow, AllowMsgTTL: true,
		}
	}
	// undeduplicated keeps the server from dropping messages whose Nats-Msg-Id it has
	// seen: it would drop those of one tenant for another's. A server takes no window
	// below 100 ms and gives a stream without one two minutes, except for a stream that
	// has a source: that one it leaves without deduplication. So it gets a source of
	// which nothing comes.
	undeduplicated := func(c jetstream.StreamConfig) jetstream.StreamConfig {
		c.Duplicates = 0
		c.Sources = []*jetstream.StreamSource{{Name: DeadStream, FilterSubject: event.DeadSubject("muster.nothing")}}
		return c
	}
	// direct lets the last value of a subject be read with a right to that subject.
	direct := func(c jetstream.StreamConfig) jetstream.StreamConfig {
		c.AllowDirect = true
		return c
	}
	return []jetstream.StreamConfig{
		// First: it is the source of the next.
		{
			Name: DeadStream, Subjects: []string{event.DeadFilter}, MaxAge: deadKept,
			Storage: jetstream.FileStorage, Duplicates: dedupeWindow, Discard: jetstream.DiscardOld, MaxBytes: deadBytes,
			MaxMsgsPerSubject: deadMost,
		},
		undeduplicated(queue(SubmitStream, "muster.submit.*", "muster.submit.*.*")),
		republished(queue(WorkloadStream, event.WorkloadSubject("*")), event.WorkloadSubject("*"), event.KeptSubject("{{wildcard(1)}}")),
		{
			Name: KeptStream, Subjects: []string{event.KeptSubject("*")}, MaxAge: workKept, Storage: jetstream.FileStorage,
			Duplicates: dedupeWindow, Discard: jetstream.DiscardOld, MaxBytes: keptBytes,
		},
		{
			Name: EventsStream, Subjects: []string{"muster.events.*.*"}, MaxAge: EventsKept,
			Storage: jetstream.FileStorage, Duplicates: dedupeWindow,
			Discard: jetstream.DiscardOld, MaxBytes: eventsBytes,
			AllowDirect: true, // of the last event of a workload, by its subject: LastEventSubject
		},
		direct(lastValue(CapacityStream, "muster.capacity.>")),
		direct(lastValue(DispatchStream, "muster.dispatch.*.*", event.CheckFilter("*"))),
		answers(undeduplicated(queue(CheckedStream, event.CheckedSubject("*")))),
		direct(lastValue(StatusStream, "muster.status.*.*")),
	}
}

// IsFollowed reports whether publishers write to a stream only if its last message, or that of
// a subject, is the one that they expect.
func IsFollowed(stream string) bool {
	switch stream {
	case EventsStream, CapacityStream, DispatchStream, StatusStream:
		return true
	}
	return false
}

// FirstSequence is where a stream that publishers follow begins when it is created now: at the
// time in microseconds. A stream that is deleted and created again would otherwise come to the
// sequences of the one before, and take a late message that expects one of those. It is far
// below 2^53, up to which readers in JavaScript count exactly.
func FirstSequence(now time.Time) uint64 { return uint64(now.UnixMicro()) }

// begun returns the configuration with which a stream that is missing is created.
func begun(config jetstream.StreamConfig) jetstream.StreamConfig {
	if IsFollowed(config.Name) {
		config.FirstSeq = FirstSequence(time.Now())
	}
	return config
}

// createStream creates a stream that is missing. The error is ErrStreamNameAlreadyInUse for one
// that exists with another configuration, which every followed stream has.
func (b *Bus) createStream(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	return b.js.CreateStream(ctx, begun(config))
}

// republished has the server put each message that the stream stores on another
// subject, too, where another stream keeps it.
func republished(c jetstream.StreamConfig, from, to string) jetstream.StreamConfig {
	c.RePublish = &jetstream.RePublish{Source: from, Destination: to}
	return c
}

// Streams lists the names of all streams.
func Streams() []string {
	var names []string
	for _, config := range streams() {
		names = append(names, config.Name)
	}
	return names
}

// LastEventSubject answers a request with the last event of a workload. Unlike a
// consumer it can be allowed for one queue only.
func LastEventSubject(queue string, id workload.ID) string {
	return "$JS.API.DIRECT.GET." + EventsStream + "." + event.EventsSubject(queue, id)
}
