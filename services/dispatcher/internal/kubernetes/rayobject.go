package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// resources are the kinds that are dispatched, by the version that is read.
var resources = map[string]schema.GroupVersionResource{
	workload.KindRayCluster: ray.Resource("rayclusters"),
	workload.KindRayJob:     ray.Resource("rayjobs"),
	workload.KindRayService: ray.Resource("rayservices"),
}

// Object is an observed Ray object.
type Object struct {
	Kind, Namespace, Name, UID string
	// Workload and Attempt are from its labels; empty and 0 on foreign objects.
	Workload workload.ID
	Attempt  int
	// Epoch of the command that it was created by; 0 on foreign objects.
	Epoch    int64
	Deleting bool
	// DeletedAt is when its deletion began, and Finalizers are what that waits for; both empty
	// of an object that is not being deleted.
	DeletedAt  time.Time
	Finalizers []string
	// Permitted: it is kept only while the permission of its cluster lasts.
	Permitted bool
	// Stamped: it carries the marks that Muster puts on all it creates.
	Stamped bool
	// Owned: another object controls it, such as the RayJob of a RayCluster, which is
	// its Controller. A wrapped object is owned by whatever it is deleted with, such as an
	// AppWrapper of the cluster.
	Owned      bool
	Controller gang.Controller
	// Sizes of the worker groups of a RayCluster: how many pods KubeRay shall keep;
	// Keeps are those that places are kept for.
	Sizes, Keeps map[string]int
	// LastUsed is the reported time of its last use; zero without a report.
	LastUsed time.Time
	// LastCheckpoint is the reported time of the last checkpoint of its work; zero
	// without a report.
	LastCheckpoint time.Time
	// EvictingAt is the time of the eviction that is written on the object, as text.
	EvictingAt string
	// Resumed: a user created it with a queue label, and Release resumed it; so it names
	// its own UID. It is suspended again at an eviction instead of being deleted. The
	// RayCluster of such a RayJob is not Resumed: KubeRay copied the annotation to it.
	Resumed bool
	// Home: it is in the place of a user's object in another cluster, or in this one.
	Home bool
	// Status is KubeRay's of an object in the place of a user's; nil of others.
	Status json.RawMessage
	// Outcome of a job that came to its end.
	Outcome string
	// Message is what KubeRay reports of the outcome or, before it, of its failure
	// to create pods.
	Message string
}

func objectOf(kind string, u *unstructured.Unstructured) Object {
	labels := u.GetLabels()
	attempt, _ := strconv.Atoi(labels[kube.AttemptLabel]) // 0 when it is not ours
	epoch, _ := strconv.ParseInt(u.GetAnnotations()[kube.EpochKey], 10, 64)
	o := Object{
		Epoch: epoch,
		Kind:  kind, Namespace: u.GetNamespace(), Name: u.GetName(), UID: string(u.GetUID()),
		Workload: workload.ID(labels[kube.WorkloadLabel]), Attempt: attempt,
		EvictingAt: u.GetAnnotations()[kube.EvictingAtKey], Permitted: labels[kube.PermissionLabel] == kube.PermissionNeeded,
		Stamped:  attempt > 0 && u.GetAnnotations()[kube.EpochKey] != "",
		Resumed:  isResumed(u),
		Home:     u.GetAnnotations()[kube.HomeKey] != "" && !isResumed(u), // of its own object a user may write it
		Deleting: u.GetDeletionTimestamp() != nil, Owned: metav1.GetControllerOfNoCopy(u) != nil, Controller: controllerOf(u),
	}
	o.DeletedAt, o.Finalizers = deletionOf(u)
	if kind == workload.KindRayJob {
		o.Outcome, o.Message = outcomeOf(u)
	}
	if o.Outcome == "" {
		o.Message = podCreationFailure(u)
	}
	if kind == workload.KindRayCluster {
		o.Sizes, o.Keeps = sizesOf(u)
		o.LastUsed = reportedTime(u, kube.LastUsedKey)
	}
	o.LastCheckpoint = reportedTime(u, kube.LastCheckpointKey)
	if o.Home {
		o.Status = statusOf(u)
	}
	return o
}

// statusOf returns the status of an object; of one that is too large only the fields that have no
// others within.
func statusOf(u *unstructured.Unstructured) json.RawMessage {
	status, _, _ := unstructured.NestedMap(u.Object, "status") // absent reads as empty
	if len(status) == 0 {
		return nil
	}
	encoded, err := json.Marshal(status)
	if err == nil && len(encoded) <= event.MostObjectStatus {
		return encoded
	}
	maps.DeleteFunc(status, func(_ string, value any) bool {
		switch value := value.(type) {
		case string:
			return len(value) > mostText
		case bool, int64, float64:
			return false
		}
		return true
	})
	if encoded, err = json.Marshal(status); err != nil || len(encoded) > event.MostObjectStatus {
		return nil
	}
	return encoded
}

// mostText is the longest text that stays of a status that is too large.
const mostText = 1 << 10

// isResumed reports whether a user created the object and Release resumed it.
func isResumed(u *unstructured.Unstructured) bool {
	return u.GetUID() != "" && u.GetAnnotations()[kube.SuspendedUIDKey] == string(u.GetUID())
}

// deletionOf returns when the deletion of an object began and what it waits for.
func deletionOf(u *unstructured.Unstructured) (at time.Time, finalizers []string) {
	if began := u.GetDeletionTimestamp(); began != nil {
		return began.Time, u.GetFinalizers()
	}
	return time.Time{}, nil
}

// reportedTime reads an annotation by which a client reports a time. One that is no time
// is none.
func reportedTime(o metav1.Object, key string) time.Time {
	at, err := time.Parse(time.RFC3339, o.GetAnnotations()[key])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// sizesOf returns how many pods KubeRay keeps of each worker group
// (GetWorkerGroupDesiredReplicas in its util.go), and for how many of them places
// are kept: a cluster that was admitted at the maximum of Ray's autoscaler may
// come back to it. The API server has filled in the defaults.
func sizesOf(u *unstructured.Unstructured) (sizes, keeps map[string]int) {
	autoscaled, _, _ := unstructured.NestedBool(u.Object, "spec", "enableInTreeAutoscaling") // absent reads as false
	atMaximum := autoscaled && u.GetAnnotations()[kube.AutoscalingKey] != ray.AtMinimum
	groups, _, _ := unstructured.NestedSlice(u.Object, "spec", "workerGroupSpecs") // absent reads as empty
	sizes, keeps = map[string]int{}, map[string]int{}
	for _, item := range groups {
		group, ok := item.(map[string]any)
		if !ok {
			continue
		}
		number := func(field string, otherwise int64) int64 {
			if value, found, err := unstructured.NestedInt64(group, field); found && err == nil {
				return value
			}
			return otherwise
		}
		least := number("minReplicas", 0)
		most := number("maxReplicas", math.MaxInt32)
		replicas := min(max(number("replicas", least), least), most)
		if suspended, _ := group["suspend"].(bool); suspended {
			replicas = 0
		}
		kept := replicas
		if atMaximum {
			kept = most
		}
		name, _ := group["groupName"].(string)
		hosts := number("numOfHosts", 1)
		sizes[name], keeps[name] = int(replicas*hosts), int(kept*hosts)
	}
	return sizes, keeps
}

// podCreationFailure returns why KubeRay cannot create pods: the condition ReplicaFailure
// of a RayCluster, which a RayJob and a RayService repeat of
// their own. It has the error of the API server, such as a service account that
// does not exist.
func podCreationFailure(u *unstructured.Unstructured) string {
	for _, path := range [][]string{
		{"status", "conditions"}, {"status", "rayClusterStatus", "conditions"},
		{"status", "pendingServiceStatus", "rayClusterStatus", "conditions"}, {"status", "activeServiceStatus", "rayClusterStatus", "conditions"},
	} {
		conditions, _, _ := unstructured.NestedSlice(u.Object, path...) // absent reads as empty
		for _, c := range conditions {
			condition, ok := c.(map[string]any)
			if ok && condition["type"] == "ReplicaFailure" && condition["status"] == "True" {
				return withoutRandomNames(strings.ReplaceAll(fmt.Sprint(condition["message"]), "\n", ": "))
			}
		}
	}
	return ""
}

// randomName is the name of a pod in an answer of the API server: in quotes behind the kind,
// or as KubeRay names pods of a RayCluster. The API server made its last five characters.
var randomName = regexp.MustCompile(`([Pp]ods? "[^"\s]*-|[a-z0-9][a-z0-9-]*-(?:head|worker)-)[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// withoutRandomNames replaces what the API server made up of the names of pods by a star.
// Each try of KubeRay has another name, and the same refusal is to read the same.
func withoutRandomNames(text string) string { return randomName.ReplaceAllString(text, "$1*") }

// outcomeOf reads a RayJob's status. Complete and Failed are where KubeRay ends
// (IsJobDeploymentTerminal in its rayjob_types.go); from ValidationFailed it
// never goes on. A stopped job ends as Complete and is no success.
func outcomeOf(u *unstructured.Unstructured) (outcome, message string) {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(u.Object, "status", name) // absent reads as empty
		return value
	}
	deployment, job := field("jobDeploymentStatus"), field("jobStatus")
	switch deployment {
	case "Complete":
		if job == "SUCCEEDED" {
			outcome = event.OutcomeSucceeded
			break
		}
		outcome = event.OutcomeFailed
	case "Failed", "ValidationFailed":
		outcome = event.OutcomeFailed
	default:
		return "", ""
	}
	message = fmt.Sprintf("RayJob %s/%s is %s", u.GetNamespace(), u.GetName(), deployment)
	if job != "" {
		message += ", its job " + job
	}
	for _, detail := range []string{field("reason"), field("message")} {
		if detail != "" {
			message += ": " + detail
		}
	}
	return outcome, message
}
