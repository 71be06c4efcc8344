package queueobjects

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// view is what a round knows: the objects of the cluster, why some are refused, and what
// counts.
type view struct {
	refused map[kueue.Key]string
	objects []*unstructured.Unstructured
	answer  query.QueuesAnswer
	// unserved: the cluster does not serve what nodes are asked for by.
	unserved bool
}

// verdict is whether a queue or an AdmissionCheck is in use. The reason of one that is not is Kueue's where Kueue
// has one.
type verdict struct{ reason, message string }

const (
	ready        = "Ready"
	readyMessage = "Can submit new workloads to Muster"
)

// active is Kueue's condition Active: whether the object is in use. Its transition time
// changes only with its status.
func active(old map[string]any, v verdict, generation int64, now time.Time) map[string]any {
	c := map[string]any{
		"type": "Active", "status": "True", "reason": v.reason, "message": v.message,
		"observedGeneration": generation, "lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
	if v.reason != ready && v.reason != checkActive {
		c["status"] = "False"
	}
	conditions, _, _ := unstructured.NestedSlice(old, "conditions")
	for _, item := range conditions {
		if before, isMap := item.(map[string]any); isMap && before["type"] == "Active" && before["status"] == c["status"] {
			c["lastTransitionTime"] = before["lastTransitionTime"]
		}
	}
	return c
}

// verdict reports whether a ClusterQueue, LocalQueue or AdmissionCheck is in use, and if not why.
func (v view) verdict(object *unstructured.Unstructured) verdict {
	if object.GetKind() == "AdmissionCheck" {
		return v.ofCheck(object)
	}
	refused := v.refused[keyOf(object)]
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "stopPolicy") // no text is refused
	switch {
	case isDeleted(object) && refused != "":
		return verdict{"Terminating", "Cannot admit new workloads: is being deleted, and stays until it can be removed: " + refused}
	case isDeleted(object):
		return verdict{"Terminating", "Cannot admit new workloads: is being deleted"}
	case refused != "":
		return verdict{"Refused", refused + v.refusedParts(object)}
	case policy != "" && policy != quota.StopNone:
		return verdict{"Stopped", "Cannot admit new workloads: is stopped by stopPolicy " + policy}
	}
	if held := v.heldBy(object); held != "" {
		return verdict{"Stopped", "Cannot admit new workloads: " + held}
	}
	if object.GetKind() == "LocalQueue" {
		return v.ofLocalQueue(object)
	}
	if why := v.answer.Inactive[object.GetName()]; why != "" {
		return verdict{"Inactive", why}
	}
	return verdict{ready, readyMessage + v.refusedParts(object) + v.unservedChecks(object)}
}

// ofLocalQueue is the verdict of a LocalQueue by its ClusterQueue, which may be of another
// cluster or of the queues file.
func (v view) ofLocalQueue(object *unstructured.Unstructured) verdict {
	name, _, _ := unstructured.NestedString(object.Object, "spec", "clusterQueue")
	if why := v.answer.Inactive[name]; why != "" {
		return verdict{"Inactive", why}
	}
	for _, of := range v.objects {
		if of.GetKind() != "ClusterQueue" || of.GetName() != name {
			continue
		}
		if its := v.verdict(of); its.reason == "Terminating" || its.reason == "Stopped" {
			return verdict{"ClusterQueueIsInactive", fmt.Sprintf("ClusterQueue %q: %s", name, its.message)}
		}
	}
	for _, q := range v.answer.Queues {
		if q.Name == object.GetName() && q.ClusterQueue == name && q.StopPolicy != "" && slices.Contains(q.Namespaces, object.GetNamespace()) && !v.has("ClusterQueue", name) {
			return verdict{"ClusterQueueIsInactive", fmt.Sprintf("ClusterQueue %q is stopped by stopPolicy %s", name, q.StopPolicy)}
		}
	}
	return verdict{ready, readyMessage}
}

func (v view) deletes(kind, name string) bool {
	return slices.ContainsFunc(v.objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name && isDeleted(o)
	})
}

func (v view) has(kind, name string) bool {
	return slices.ContainsFunc(v.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
}

// heldBy returns which operator holds a LocalQueue, or every queue of a ClusterQueue.
func (v view) heldBy(object *unstructured.Unstructured) string {
	var held []string
	for _, q := range v.answer.Queues {
		of := q.ClusterQueue == object.GetName()
		if object.GetKind() == "LocalQueue" {
			of = q.Name == object.GetName() && slices.Contains(q.Namespaces, object.GetNamespace())
		}
		switch {
		case !of:
		case q.ClusterQueueHold != nil:
			return q.ClusterQueueHold.Message()
		case q.Hold == nil:
			return ""
		default:
			held = append(held, q.Hold.Message())
		}
	}
	return strings.Join(held, "; ")
}
