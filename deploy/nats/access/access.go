// Package access defines the rights of each user on Muster's NATS server, as data derived
// from the subjects and streams of package bus, and writes them as configuration of
// nats-server.
//
// It is the only list of these rights: the local stack, the tests and installations use
// it. It is not for making keys (package keys), nor for connecting.
package access

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// User is an identity that may connect.
type User struct {
	Name string
	// Publish and Subscribe are subjects, wildcards included; everything else is
	// refused. The inbox of the user's own key comes on top.
	Publish, Subscribe []string
	// Answers is the right to reply to requests.
	Answers bool
	// Person uses tools without private inboxes, such as nats, and can read the replies
	// to other persons. No tenant is one.
	Person bool
	// Limits bound the user's share of the server's memory.
	Limits Limits
}

// Limits bound the memory that a key uses on the server: for each connection, and each
// subscription, whose subject may have 4 KB. 0 is no bound.
type Limits struct {
	Connections   int // with one key
	Subscriptions int // of each connection
}

// A tenant's connection that does not read may also have up to the server's max_pending
// waiting for it: 32 of them 1 GiB. The services of a cluster have one connection for each
// replica.
var (
	tenantLimits  = Limits{Connections: 32, Subscriptions: 32}
	clusterLimits = Limits{Connections: 16, Subscriptions: 256}
)

// Names of the users that exist once.
const (
	Intake       = "intake"
	QueueManager = "queue-manager"
	Operator     = "operator"
)

// CapacityWatcher and Dispatcher are the users of one cluster.
func CapacityWatcher(cluster string) string { return "capacity-watcher-" + cluster }

// Dispatcher names the user of a cluster's dispatcher.
func Dispatcher(cluster string) string { return "dispatcher-" + cluster }

// MemberIntake names the user of the intake of a further cluster.
func MemberIntake(cluster string) string { return Intake + "-" + cluster }

// Users lists all services of an installation with the given clusters, and one
// operator: a person with all rights of the command line.
func Users(clusters ...string) []User {
	users := []User{intake(), queueManager(), operator()}
	for _, cluster := range clusters {
		users = append(users, capacityWatcher(cluster), dispatcher(cluster))
	}
	return users
}

// Tenant is a user that may submit to the given queues, with its name or without, and read
// the events of their workloads, as they come and the last one of each; nothing else.
//
// A tenant may not create consumers: a consumer's creator sets the delivery subject, and
// the server does not check the right to publish there. So tenants read events by plain
// subscription, and past ones by direct get.
func Tenant(name string, queues ...string) (User, error) {
	if !workload.ValidName(name) {
		return User{}, fmt.Errorf("tenant %q: want a name of lower-case letters, digits and dashes", name)
	}
	if len(queues) == 0 {
		return User{}, fmt.Errorf("tenant %q has no queue", name)
	}
	user := User{Name: "tenant-" + name, Limits: tenantLimits}
	for _, queue := range queues {
		if !workload.ValidName(queue) {
			return User{}, fmt.Errorf("tenant %q: queue %q: want a name of lower-case letters, digits and dashes", name, queue)
		}
		user.Publish = append(user.Publish, event.SubmitSubject(queue), event.SubmitSubjectAs(queue, user.Name), bus.LastEventSubject(queue, "*"))
		user.Subscribe = append(user.Subscribe, event.EventsSubject(queue, "*"))
	}
	return user, nil
}

// NamedTenant is a Tenant that may submit under its own name only. Tenants that do not
// trust each other must be named: unnamed ones share one identity, so that one could take
// the id of another's submission to the same queue.
func NamedTenant(name string, queues ...string) (User, error) {
	user, err := Tenant(name, queues...)
	user.Publish = slices.DeleteFunc(user.Publish, func(right string) bool {
		return slices.ContainsFunc(queues, func(queue string) bool { return right == event.SubmitSubject(queue) })
	})
	return user, err
}

func intake() User {
	return User{Name: Intake, Publish: slices.Concat(
		[]string{event.WorkloadSubject("*"), event.EventsSubject("*", "*"), query.WorkloadsSubject,
			// Messages that take too long to read are dead-lettered.
			event.DeadSubject(event.SubmitSubject("*")), event.DeadSubject(event.SubmitSubjectAs("*", "*")),
			// The Kubernetes controller syncs its cluster's queues.
			query.ClusterConfigureSubject("*"), query.AppliedSubject, query.QueuesSubject,
			// It asks for the statuses of what runs in other clusters for objects of its own.
			query.HomeSubject("*", "*"),
			// The HTTP API queries queue-manager.
			query.HistorySubject, query.ExplainSubject, query.NodesSubject, query.StatusSubject, query.UsageSubject, query.DemandSubject, query.HoldSubject,
			query.WhatIfSubject, query.ActivitySubject, query.DecisionsSubject, query.ManifestSubject,
			// The Kubernetes controller notices the loss of its stream.
			jetstream + "STREAM.INFO." + bus.WorkloadStream},
		works(bus.SubmitStream, event.SubmitSubject("*"), event.SubmitSubjectAs("*", "*")), makesRoom(bus.SubmitStream), makesStreams(),
		// The Kubernetes controller writes the state of workloads back.
		follows(bus.EventsStream, event.EventsSubject("*", "*")), follows(bus.CapacityStream, event.GangSubject("*", "*")),
		// The HTTP API lists dead letters to operators.
		follows(bus.DeadStream, event.DeadFilter),
	)}
}

func queueManager() User {
	return User{
		Name: QueueManager, Answers: true,
		Publish: slices.Concat(
			// It passes on what the intakes of further clusters submit.
			[]string{event.WorkloadSubject("*")},
			// It asks dispatchers for what queues carry to other clusters.
			[]string{query.CarriedWantedSubject("*")},
			[]string{event.EventsSubject("*", "*"), event.DispatchSubject("*", "*"), event.CheckFilter("*"), event.DemandSubject, event.DeadFilter, event.AskSubject("*")},
			works(bus.WorkloadStream, event.WorkloadSubject("*")), works(bus.CheckedStream, event.CheckedSubject("*")), makesStreams(), configuresStreams(), makesConsumers(),
			follows(bus.CapacityStream, event.CapacityFilter("*")), follows(bus.StatusStream, event.StatusFilter()),
			// It bounds a cluster's messages by the cluster's size.
			[]string{lastOf(bus.CapacityStream, event.CapacityFilter("*")), lastOf(bus.StatusStream, event.StatusFilter()), lastOf(bus.DispatchStream, event.PermissionSubject("*"))},
			// It bounds each queue's history.
			[]string{jetstream + "DIRECT.GET." + bus.EventsStream, jetstream + "STREAM.MSG.GET." + bus.KeptStream},
			// It has how much NATS stores.
			[]string{jetstream + "INFO"},
			// It has another server lead a stream that stores nothing.
			[]string{jetstream + "STREAM.LEADER.STEPDOWN." + bus.EventsStream, jetstream + "STREAM.LEADER.STEPDOWN." + bus.DispatchStream},
			// It passes tenants' requests for last events on.
			[]string{bus.LastEventSubject("*", "*")},
			// It reads back what a restored database has lost.
			follows(bus.DispatchStream, event.DispatchFilter("*")), follows(bus.EventsStream, event.EventsFilter()), follows(bus.KeptStream, event.KeptFilter()),
		),
		Subscribe: slices.Concat(query.Subjects(), []string{query.TruthSubject("*"), query.ConfigureSubject, query.ClusterConfigureSubject("*"), query.HomeSubject("*", "*"), query.CarrySubject("*"), query.CarriedSubject("*", "*", "*"), query.HoldSubject, bus.GuardSubject + ">"}),
	}
}

// Checker is the user of the controller of an AdmissionCheck. It reads what the check is
// asked, and publishes its answers; it reads and answers for no other check.
func Checker(check string) (User, error) {
	if !workload.ValidName(check) {
		return User{}, fmt.Errorf("AdmissionCheck %q: want a name of lower-case letters, digits and dashes", check)
	}
	return User{Name: "checker-" + check, Limits: tenantLimits,
		Publish:   slices.Concat([]string{event.CheckedSubject(check)}, follows(bus.DispatchStream, event.CheckFilter(check))),
		Subscribe: []string{event.CheckFilter(check)},
	}, nil
}

// NewMemberIntake is the user of the intake of a further cluster, whose users submit to the given
// queues with kubectl. It reads the events of these queues. What it submits and asks goes to
// queue-manager, which sees to it that it is about objects of the cluster.
func NewMemberIntake(cluster string, queues ...string) (User, error) {
	if !workload.ValidName(cluster) {
		return User{}, fmt.Errorf("intake of cluster %q: want a name of lower-case letters, digits and dashes", cluster)
	}
	if len(queues) == 0 {
		return User{}, fmt.Errorf("intake of cluster %q has no queue", cluster)
	}
	user := User{Name: MemberIntake(cluster), Limits: clusterLimits, Publish: slices.Concat(
		// It notices the loss of the streams.
		[]string{jetstream + "STREAM.INFO." + bus.WorkloadStream}, makesStreams(), follows(bus.CapacityStream, event.GangSubject(cluster, "*")),
	)}
	for _, queue := range queues {
		if !workload.ValidName(queue) {
			return User{}, fmt.Errorf("intake of cluster %q: queue %q: want a name of lower-case letters, digits and dashes", cluster, queue)
		}
		user.Publish = append(user.Publish, query.HomeSubject(cluster, queue))
		user.Publish = append(user.Publish, follows(bus.EventsStream, event.EventsSubject(queue, "*"))...)
	}
	return user, nil
}

func capacityWatcher(cluster string) User {
	return User{Name: CapacityWatcher(cluster), Limits: clusterLimits, Publish: slices.Concat(
		[]string{event.CapacityFilter(cluster), lastOf(bus.CapacityStream, event.CapacityFilter(cluster))}, follows(bus.CapacityStream, event.CapacityFilter(cluster)), makesStreams(),
	), Subscribe: []string{event.AskSubject(cluster)}}
}

func dispatcher(cluster string) User {
	return User{Name: Dispatcher(cluster), Limits: clusterLimits, Publish: slices.Concat(
		[]string{query.CarrySubject(cluster), query.CarriedSubject(cluster, "*", "*")},
		[]string{event.ClusterStatusFilter(cluster), query.TruthSubject(cluster), query.StraysSubject, lastOf(bus.StatusStream, event.ClusterStatusFilter(cluster))},
		follows(bus.DispatchStream, event.DispatchFilter(cluster)), follows(bus.StatusStream, event.ClusterStatusFilter(cluster)),
		makesStreams(),
	), Subscribe: []string{event.AskSubject(cluster), query.CarriedWantedSubject(cluster)}}
}

// operator submits and cancels in every queue, configures queues, and reads
// everything.
func operator() User {
	user := User{
		Name: Operator, Person: true,
		Publish: []string{
			event.SubmitSubject("*"), event.SubmitSubjectAs("*", Operator), event.WorkloadSubject("*"), bus.LastEventSubject("*", "*"), query.ConfigureSubject,
			jetstream + "INFO", jetstream + "STREAM.NAMES", jetstream + "STREAM.LIST",
		},
		Subscribe: []string{event.EventsSubject("*", "*"), event.CapacityFilter("*"), event.DispatchFilter("*"), event.CheckFilter("*"), event.CheckedSubject("*"), event.DemandSubject, event.StatusFilter(), event.DeadFilter},
	}
	user.Publish = slices.Concat(user.Publish, query.Subjects(), perStream("STREAM.INFO."), perStream("CONSUMER.LIST."), follows(bus.DeadStream, event.DeadFilter),
		follows(bus.EventsStream, event.EventsSubject("*", "*")), follows(bus.CapacityStream, event.CapacityFilter("*")),
		follows(bus.DispatchStream, event.DispatchFilter("*")), follows(bus.DispatchStream, event.CheckFilter("*")), follows(bus.StatusStream, event.StatusFilter()))
	return user
}
