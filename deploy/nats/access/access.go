// Package access says who may publish and read what on Muster's NATS server, as
// data made from the subjects and streams of package bus, and writes it down as
// a nats-server reads it.
//
// It is the only list of these rights: the local stack, the tests and an
// installation take theirs from here. It makes no keys (package keys) and
// connects to nothing.
package access

import (
	"slices"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/query"
)

// User is somebody who may connect.
type User struct {
	Name string
	// Publish and Subscribe are subjects, wildcards included; everything else is
	// refused. The inbox of the user's own key comes on top.
	Publish, Subscribe []string
	// Answers is the right to reply to requests that the user has been sent.
	Answers bool
	// Person uses tools that know nothing of private inboxes, such as nats.
	Person bool
}

// Names of the users that are there once.
const (
	Intake       = "intake"
	QueueManager = "queue-manager"
	Operator     = "operator"
)

// CapacityWatcher and Dispatcher are the users of one cluster.
func CapacityWatcher(cluster string) string { return "capacity-watcher-" + cluster }

// Dispatcher names the user of a cluster's dispatcher.
func Dispatcher(cluster string) string { return "dispatcher-" + cluster }

// Users lists all services of an installation with the given clusters, and one
// operator: a person with all rights of the command line.
func Users(clusters ...string) []User {
	users := []User{intake(), queueManager(), operator()}
	for _, cluster := range clusters {
		users = append(users, capacityWatcher(cluster), dispatcher(cluster))
	}
	return users
}

func intake() User {
	return User{Name: Intake, Publish: slices.Concat(
		[]string{bus.WorkloadSubject("*"), bus.EventsSubject("*", "*"), query.WorkloadsSubject},
		works(bus.SubmitStream, bus.IntakeDurable), makesStreams(),
		// The door of Kubernetes writes back what becomes of workloads.
		follows(bus.EventsStream, bus.EventsSubject("*", "*")), follows(bus.CapacityStream, bus.GangSubject("*", "*")),
	)}
}

func queueManager() User {
	return User{
		Name: QueueManager, Answers: true,
		Publish: slices.Concat(
			[]string{bus.EventsSubject("*", "*"), bus.DispatchSubject("*", "*"), jetstream + "STREAM.MSG.GET." + bus.DispatchStream,
				jetstream + "CONSUMER.DELETE." + bus.WorkloadStream + "." + bus.QueueManagerDurable},
			works(bus.WorkloadStream, bus.QueueManagerDurable), makesStreams(), configuresStreams(),
			follows(bus.CapacityStream, bus.CapacityFilter("*")), follows(bus.StatusStream, bus.StatusFilter()),
		),
		Subscribe: query.Subjects(),
	}
}

func capacityWatcher(cluster string) User {
	return User{Name: CapacityWatcher(cluster), Publish: slices.Concat(
		[]string{bus.CapacityFilter(cluster)}, follows(bus.CapacityStream, bus.CapacityFilter(cluster)), makesStreams(),
	)}
}

func dispatcher(cluster string) User {
	return User{Name: Dispatcher(cluster), Publish: slices.Concat(
		[]string{bus.ClusterStatusFilter(cluster), query.WorkloadsSubject},
		follows(bus.DispatchStream, bus.DispatchFilter(cluster)), follows(bus.StatusStream, bus.ClusterStatusFilter(cluster)),
		makesStreams(),
	)}
}

// operator submits and cancels in every queue, and reads everything.
func operator() User {
	user := User{
		Name: Operator, Person: true,
		Publish: []string{
			bus.SubmitSubject("*"), bus.WorkloadSubject("*"),
			jetstream + "INFO", jetstream + "STREAM.NAMES", jetstream + "STREAM.LIST",
		},
		Subscribe: []string{bus.EventsSubject("*", "*"), bus.CapacityFilter("*"), bus.DispatchFilter("*"), bus.StatusFilter()},
	}
	user.Publish = slices.Concat(user.Publish, query.Subjects(), perStream("STREAM.INFO."),
		follows(bus.EventsStream, bus.EventsSubject("*", "*")), follows(bus.CapacityStream, bus.CapacityFilter("*")),
		follows(bus.DispatchStream, bus.DispatchFilter("*")), follows(bus.StatusStream, bus.StatusFilter()))
	return user
}

// jetstream is the prefix of the requests that JetStream answers.
const jetstream = "$JS.API."

// follows is what bus.Follow and its kin ask of the server: consumers of their
// own, without acknowledgement, of what the filter matches. The streams are ones
// that no durable consumer reads, so none can be taken from somebody else.
func follows(stream, filter string) []string {
	return []string{
		jetstream + "STREAM.INFO." + stream,
		jetstream + "CONSUMER.CREATE." + stream + ".*." + filter, jetstream + "CONSUMER.INFO." + stream + ".*",
		jetstream + "CONSUMER.DELETE." + stream + ".*", jetstream + "CONSUMER.MSG.NEXT." + stream + ".*",
	}
}

// works is what bus.Work asks: one durable consumer and its acknowledgements.
func works(stream, durable string) []string {
	consumer := stream + "." + durable
	return []string{
		jetstream + "CONSUMER.CREATE." + consumer, jetstream + "CONSUMER.CREATE." + consumer + ".>",
		jetstream + "CONSUMER.INFO." + consumer, jetstream + "CONSUMER.MSG.NEXT." + consumer,
		"$JS.ACK." + consumer + ".>",
	}
}

// makesStreams is what bus.EnsureStreams asks.
func makesStreams() []string {
	return perStream("STREAM.CREATE.")
}

// configuresStreams is what bus.ConfigureStreams asks on top.
func configuresStreams() []string {
	return slices.Concat(perStream("STREAM.UPDATE."), perStream("STREAM.INFO."))
}

func perStream(request string) []string {
	var subjects []string
	for _, stream := range bus.Streams() {
		subjects = append(subjects, jetstream+request+stream)
	}
	return subjects
}
