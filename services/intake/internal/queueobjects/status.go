package queueobjects

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// statusOf returns the status to write on an object, in Kueue's terms; nil if the
// object is up to date.
func statusOf(object *unstructured.Unstructured, v view, now time.Time) map[string]any {
	var status map[string]any
	switch object.GetKind() {
	case "ClusterQueue":
		status = clusterQueue(object.GetName(), v.answer.Queues)
	case "LocalQueue":
		status = localQueue(object.GetNamespace(), object.GetName(), v.answer.Queues)
	case "AdmissionCheck":
		if !asksForNodes(object) {
			return nil
		}
		status = map[string]any{}
	default:
		return nil
	}
	old, _, _ := unstructured.NestedMap(object.Object, "status") // absent reads as empty
	status["conditions"] = []any{active(old, v.verdict(object), object.GetGeneration(), now)}
	for field, value := range status {
		if !reflect.DeepEqual(old[field], value) {
			return status
		}
	}
	return nil
}

func clusterQueue(name string, queues []query.Queue) map[string]any {
	var waiting, provisioning, live int
	flavors := map[string][]any{}
	var order []string
	for _, q := range queues {
		if q.ClusterQueue != name {
			continue
		}
		waiting, provisioning, live = waiting+q.Waiting, provisioning+q.Provisioning, live+q.Live
		if len(order) > 0 {
			continue // each of its queues has the same quota
		}
		for _, l := range q.Quota {
			if l.Unbounded {
				continue
			}
			if flavors[l.Flavor] == nil {
				order = append(order, l.Flavor)
			}
			flavors[l.Flavor] = append(flavors[l.Flavor], map[string]any{
				"name": string(l.Resource), "total": resource.Format(l.Resource, l.Used), "borrowed": resource.Format(l.Resource, l.Borrowed),
			})
		}
	}
	used := []any{}
	for _, flavor := range order {
		used = append(used, map[string]any{"name": flavor, "resources": flavors[flavor]})
	}
	status := counts(waiting, provisioning, live)
	status["flavorsReservation"], status["flavorsUsage"] = used, used
	return status
}

// localQueue has the counts of a LocalQueue, which queue-manager keeps apart from those of its
// name in other namespaces. An older queue-manager counts by name.
func localQueue(namespace, name string, queues []query.Queue) map[string]any {
	for _, q := range queues {
		if q.Name == name && len(q.Namespaces) == 1 && q.Namespaces[0] == namespace {
			return counts(q.Waiting, q.Provisioning, q.Live)
		}
	}
	return map[string]any{}
}

// counts are those of Kueue: a workload for which nodes are asked for is not admitted and has
// reserved its quota.
func counts(waiting, provisioning, live int) map[string]any {
	return map[string]any{
		"pendingWorkloads": int64(waiting - provisioning), "reservingWorkloads": int64(live + provisioning), "admittedWorkloads": int64(live),
	}
}
