package event

import (
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// SubmitSubject is for submissions for a queue.
func SubmitSubject(queue string) string { return "muster.submit." + queue }

// SubmitSubjectAs is for submissions of a user of NATS for a queue. The user's
// rights name it, so who publishes there is that user, whatever is in the message.
func SubmitSubjectAs(queue, user string) string { return SubmitSubject(queue) + "." + user }

// SubmittedBy reads queue and user of a submit subject; the user is empty where
// the subject does not say.
func SubmittedBy(subject string) (queue, user string) {
	queue, user, _ = strings.Cut(strings.TrimPrefix(subject, SubmitSubject("")), ".")
	return queue, user
}

// SubjectWorkload reads the workload of an EventsSubject or a GangSubject.
func SubjectWorkload(subject string) workload.ID {
	return workload.ID(subject[strings.LastIndexByte(subject, '.')+1:])
}

// WorkloadSubject carries accepted submissions and cancellations of a queue.
func WorkloadSubject(queue string) string { return "muster.workload." + queue }

// KeptSubject carries once more what a queue's WorkloadSubject carried.
func KeptSubject(queue string) string { return "muster.kept." + queue }

// KeptFilter matches all submissions and cancellations that are kept.
func KeptFilter() string { return KeptSubject("*") }

// EventsFilter matches the life of all workloads.
func EventsFilter() string { return "muster.events.*.*" }

// EventsSubject carries the life of one workload.
func EventsSubject(queue string, id workload.ID) string {
	return "muster.events." + queue + "." + token(string(id))
}

// ClusterEventsSubject carries the states of a cluster, beside the life of workloads: no queue has
// an underscore in its name.
func ClusterEventsSubject(cluster string) string { return "muster.events._cluster." + token(cluster) }

// NodeSubject holds the last observation of a node.
func NodeSubject(cluster, node string) string {
	return "muster.capacity." + cluster + ".node." + token(node)
}

// NamespaceSubject holds the last observation of a namespace.
func NamespaceSubject(cluster, namespace string) string {
	return "muster.capacity." + cluster + ".namespace." + token(namespace)
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

// StatusSubject holds the dispatcher's status of a workload.
func StatusSubject(cluster string, id workload.ID) string {
	return "muster.status." + cluster + "." + token(string(id))
}

// PermissionAskedSubject holds the last question of a cluster's dispatcher for permission.
func PermissionAskedSubject(cluster string) string { return "muster.status." + cluster + ".permission" }

// PermissionSubject holds the last permission of a cluster, among its commands: who has read
// it has read all commands before it.
func PermissionSubject(cluster string) string { return "muster.dispatch." + cluster + ".permission" }

// AskSubject carries questions to the watcher and the dispatcher of a cluster. It is
// of no stream: who asks does so again until there is an answer.
func AskSubject(cluster string) string { return "muster.ask." + cluster }

// CheckSubject holds what an AdmissionCheck is asked about a workload.
func CheckSubject(check string, id workload.ID) string {
	return checkPrefix + token(check) + "." + token(string(id))
}

// CheckFilter matches all that an AdmissionCheck is asked, or all of them with "*".
func CheckFilter(check string) string { return checkPrefix + token(check) + ".*" }

// CheckedSubject is for the answers of an AdmissionCheck.
func CheckedSubject(check string) string { return checkedPrefix + token(check) }

// IsCheckedSubject reports whether a subject is that of the answers of a check.
func IsCheckedSubject(subject string) bool { return strings.HasPrefix(subject, checkedPrefix) }

const (
	checkPrefix   = "muster.check."
	checkedPrefix = "muster.checked."
)

// StatusFilter matches the statuses of all clusters.
func StatusFilter() string { return "muster.status.*.*" }

// ClusterStatusFilter matches the statuses of one cluster.
func ClusterStatusFilter(cluster string) string { return "muster.status." + cluster + ".*" }

// DeadFilter matches all dead letters.
const DeadFilter = "muster.dead.>"

// DeadSubject holds the dead letters of the given subject.
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
