// Package access says who may publish and read what on Muster's NATS server, as
// data made from the subjects and streams of package bus, and writes it down as
// a nats-server reads it.
//
// It is the only list of these rights: the local stack, the tests and an
// installation take theirs from here. It makes no keys (package keys) and
// connects to nothing.
package access

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/workload"
)

// User is somebody who may connect.
type User struct {
	Name string
	// Publish and Subscribe are subjects, wildcards included; everything else is
	// refused. The inbox of the user's own key comes on top.
	Publish, Subscribe []string
	// Answers is the right to reply to requests that the user has been sent.
	Answers bool
	// Person uses tools that know nothing of private inboxes, such as nats, and
	// reads all replies of such persons. No tenant is one.
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

// Tenant is a user who may submit to the given queues, under their own name too,
// and read the events of their workloads, as they come and the last one of each;
// nothing else.
//
// A tenant may make no consumer: whoever makes one says to which subject the
// server shall deliver, and the server does not ask whether they may publish
// there. So events are read by plain subscription, and the past by direct get.
func Tenant(name string, queues ...string) (User, error) {
	if !workload.ValidName(name) {
		return User{}, fmt.Errorf("tenant %q: want a name of lower-case letters, digits and dashes", name)
	}
	if len(queues) == 0 {
		return User{}, fmt.Errorf("tenant %q has no queue", name)
	}
	user := User{Name: "tenant-" + name}
	for _, queue := range queues {
		if !workload.ValidName(queue) {
			return User{}, fmt.Errorf("tenant %q: queue %q: want a name of lower-case letters, digits and dashes", name, queue)
		}
		user.Publish = append(user.Publish, bus.SubmitSubject(queue), bus.SubmitSubjectAs(queue, user.Name), bus.LastEventSubject(queue, "*"))
		user.Subscribe = append(user.Subscribe, bus.EventsSubject(queue, "*"))
	}
	return user, nil
}

func intake() User {
	return User{Name: Intake, Publish: slices.Concat(
		[]string{bus.WorkloadSubject("*"), bus.EventsSubject("*", "*"), query.WorkloadsSubject,
			// What takes too long to read is given up.
			bus.DeadSubject(bus.SubmitSubject("*")), bus.DeadSubject(bus.SubmitSubjectAs("*", "*")),
			// The door of a cluster brings that cluster's queues.
			query.ClusterConfigureSubject("*"), query.AppliedSubject, query.QueuesSubject,
			// The HTTP door answers what is asked of it.
			query.HistorySubject, query.ExplainSubject},
		works(bus.SubmitStream, bus.IntakeDurable, bus.SubmitSubject("*"), bus.SubmitSubjectAs("*", "*")), makesStreams(),
		// The door of Kubernetes writes back what becomes of workloads.
		follows(bus.EventsStream, bus.EventsSubject("*", "*")), follows(bus.CapacityStream, bus.GangSubject("*", "*")),
	)}
}

func queueManager() User {
	return User{
		Name: QueueManager, Answers: true,
		Publish: slices.Concat(
			[]string{bus.EventsSubject("*", "*"), bus.DispatchSubject("*", "*"), bus.DeadFilter, bus.AskSubject("*"), jetstream + "CONSUMER.DELETE." + bus.WorkloadStream + ".*"},
			works(bus.WorkloadStream, bus.QueueManagerDurable, bus.WorkloadSubject("*")), makesStreams(), configuresStreams(), makesConsumers(),
			follows(bus.CapacityStream, bus.CapacityFilter("*")), follows(bus.StatusStream, bus.StatusFilter()),
			// What the database may have forgotten is read back.
			follows(bus.DispatchStream, bus.DispatchFilter("*")), follows(bus.EventsStream, bus.EventsFilter()), follows(bus.KeptStream, bus.KeptFilter()),
		),
		Subscribe: slices.Concat(query.Subjects(), []string{query.ConfigureSubject, query.ClusterConfigureSubject("*"), bus.GuardSubject + ">"}),
	}
}

func capacityWatcher(cluster string) User {
	return User{Name: CapacityWatcher(cluster), Publish: slices.Concat(
		[]string{bus.CapacityFilter(cluster), lastOf(bus.CapacityStream, bus.CapacityFilter(cluster))}, follows(bus.CapacityStream, bus.CapacityFilter(cluster)), makesStreams(),
	), Subscribe: []string{bus.AskSubject(cluster)}}
}

func dispatcher(cluster string) User {
	return User{Name: Dispatcher(cluster), Publish: slices.Concat(
		[]string{bus.ClusterStatusFilter(cluster), query.WorkloadsSubject, lastOf(bus.StatusStream, bus.ClusterStatusFilter(cluster))},
		follows(bus.DispatchStream, bus.DispatchFilter(cluster)), follows(bus.StatusStream, bus.ClusterStatusFilter(cluster)),
		makesStreams(),
	), Subscribe: []string{bus.AskSubject(cluster)}}
}

// operator submits and cancels in every queue, configures queues, and reads
// everything.
func operator() User {
	user := User{
		Name: Operator, Person: true,
		Publish: []string{
			bus.SubmitSubject("*"), bus.SubmitSubjectAs("*", Operator), bus.WorkloadSubject("*"), bus.LastEventSubject("*", "*"), query.ConfigureSubject,
			jetstream + "INFO", jetstream + "STREAM.NAMES", jetstream + "STREAM.LIST",
		},
		Subscribe: []string{bus.EventsSubject("*", "*"), bus.CapacityFilter("*"), bus.DispatchFilter("*"), bus.StatusFilter(), bus.DeadFilter},
	}
	user.Publish = slices.Concat(user.Publish, query.Subjects(), perStream("STREAM.INFO."), perStream("CONSUMER.LIST."), follows(bus.DeadStream, bus.DeadFilter),
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

// lastOf is what bus.LastMessage asks of a stream that lets subjects be read by
// themselves.
func lastOf(stream, filter string) string { return jetstream + "DIRECT.GET." + stream + "." + filter }

// works is what bus.Work asks: which subjects have messages, a durable consumer for
// each of them with its acknowledgements, and the end of the one that was for all.
func works(stream, durable string, filters ...string) []string {
	subjects := []string{
		jetstream + "STREAM.INFO." + stream, jetstream + "CONSUMER.DELETE." + stream + "." + durable,
		jetstream + "CONSUMER.INFO." + stream + ".*", jetstream + "CONSUMER.MSG.NEXT." + stream + ".*",
		"$JS.ACK." + stream + ".>",
	}
	for _, filter := range filters {
		subjects = append(subjects, jetstream+"CONSUMER.CREATE."+stream+".*."+filter)
	}
	return subjects
}

// makesStreams is what bus.EnsureStreams asks.
func makesStreams() []string {
	return perStream("STREAM.CREATE.")
}

// configuresStreams is what bus.ConfigureStreams asks on top; it deletes a stream
// that has lost its files.
func configuresStreams() []string {
	return slices.Concat(perStream("STREAM.UPDATE."), perStream("STREAM.INFO."), perStream("STREAM.DELETE."))
}

// makesConsumers is what bus.GuardJetStream asks for others.
func makesConsumers() []string {
	var subjects []string
	for _, create := range perStream("CONSUMER.CREATE.") {
		subjects = append(subjects, create+".*.>")
	}
	return subjects
}

func perStream(request string) []string {
	var subjects []string
	for _, stream := range bus.Streams() {
		subjects = append(subjects, jetstream+request+stream)
	}
	return subjects
}
