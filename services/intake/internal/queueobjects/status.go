package queueobjects

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// statusOf returns the status to write on an object, in Kueue's terms; nil if the
// object is up to date.
func statusOf(object *unstructured.Unstructured, refused string, queues []query.Queue, now time.Time) map[string]any {
	var status map[string]any
	switch object.GetKind() {
	case "ClusterQueue":
		status = clusterQueue(object.GetName(), queues)
	case "LocalQueue":
		status = localQueue(object.GetNamespace(), object.GetName(), queues)
	default:
		return nil
	}
	old, _, _ := unstructured.NestedMap(object.Object, "status") // absent reads as empty
	status["conditions"] = []any{active(old, refused, inactive(object, queues), object.GetGeneration(), now)}
	for field, value := range status {
		if !reflect.DeepEqual(old[field], value) {
			return status
		}
	}
	return nil
}

// active is Kueue's condition Active: whether the queue is in use. Its transition time
// changes only with its status.
func active(old map[string]any, refused, inactive string, generation int64, now time.Time) map[string]any {
	c := map[string]any{
		"type": "Active", "status": "True", "reason": "Ready", "message": "Can submit new workloads to Muster",
		"observedGeneration": generation, "lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
	switch {
	case refused != "":
		c["status"], c["reason"], c["message"] = "False", "Refused", refused
	case inactive != "":
		c["status"], c["reason"], c["message"] = "False", "Inactive", inactive
	}
	conditions, _, _ := unstructured.NestedSlice(old, "conditions")
	for _, item := range conditions {
		if before, isMap := item.(map[string]any); isMap && before["type"] == "Active" && before["status"] == c["status"] {
			c["lastTransitionTime"] = before["lastTransitionTime"]
		}
	}
	return c
}

// inactive says why nothing of a ClusterQueue, or of that of a LocalQueue, is admitted.
func inactive(object *unstructured.Unstructured, queues []query.Queue) string {
	for _, q := range queues {
		ofCluster := object.GetKind() == "ClusterQueue" && q.ClusterQueue == object.GetName()
		ofNamespace := object.GetKind() == "LocalQueue" && q.Name == object.GetName() && slices.Contains(q.Namespaces, object.GetNamespace())
		if ofCluster || ofNamespace {
			return q.Inactive
		}
	}
	return ""
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
