package kubecontroller

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// A Ray object that moves stays suspended, and spec.managedBy has KubeRay leave it alone, so its
// status is this controller's to write: that of the object in its place, as KubeRay writes it there.

// otherManager is the manager that KubeRay knows beside itself.
const otherManager = "kueue.x-k8s.io/multikueue"

// statusMirror is the API server, for the status of an object that KubeRay leaves alone.
type statusMirror interface {
	ReplaceStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error
}

// movesAway reports whether a Ray object stays suspended while its gang runs.
func movesAway(object *unstructured.Unstructured) bool {
	manager, _, _ := unstructured.NestedString(object.Object, "spec", "managedBy") // absent reads as empty
	return manager == otherManager && strings.HasPrefix(object.GetAPIVersion(), "ray.io/")
}

// mirrored is what is known of the object in the place of one that moves.
type mirrored struct {
	// last is the last answer; its workload is empty before the first.
	last query.HomeStatus
	// asked: there was an answer, with a status or without.
	asked bool
	// settled: the workload has ended, and the answer is from after that.
	settled bool
	// heard is when the last answer came or, before the first, when it was due.
	heard time.Time
	// stale is since when there is no answer; zero while there is one.
	stale time.Time
	// written is the status that this process wrote last; nil before.
	written map[string]any
}

// placed reports whether the workload has its places, or had them when it ended.
func (k *tracked) placed() bool {
	return k.record != nil && k.record.Cluster != "" && k.record.Phase != workload.Queued
}

// placeText is the text of the annotation: the cluster and the name of the object in the place of
// one that moves.
func (k *tracked) placeText(moves bool) string {
	if !moves || !k.placed() {
		return ""
	}
	return k.record.Cluster + "/" + k.record.ObjectName()
}

// staleText is the text of the annotation: since when the status of what runs in the place of an
// object that moves is not known.
func (k *tracked) staleText(moves bool) string {
	if !moves || !k.placed() || k.mirrored.stale.IsZero() {
		return ""
	}
	return k.mirrored.stale.UTC().Format(time.RFC3339)
}

// mirror writes the status of an object that moves, before the annotation with its state, which tells
// the next process that the status is written. One that the API server refuses is not written
// again: it comes from another cluster, which may have another version of KubeRay. Of the last one of
// a RayJob the end is written.
func (c *Controller) mirror(ctx context.Context, object *unstructured.Unstructured, id workload.ID, k tracked) error {
	status, known := k.homeStatus(object.GetKind(), ended(object.GetAnnotations()[kube.StateKey]))
	if !known || reflect.DeepEqual(status, k.mirrored.written) {
		return nil
	}
	err := c.cluster.ReplaceStatus(ctx, object, status)
	if refuses(err) {
		c.options.Logger.Warn("the API server refuses the status of what runs in the place of an object; leaving the one it has",
			zap.String("workload", string(id)), zap.Stringer("object", k.key), zap.String("cluster", k.mirrored.last.Cluster), zap.Error(err))
		err = c.writeEnd(ctx, object, k)
	}
	if err == nil {
		c.note(id, func(kept *tracked) { kept.mirrored.written = status })
	}
	return err
}

// refuses reports whether the API server has refused a status, and neither failed nor may take it
// when it is sent again.
func refuses(err error) bool {
	var answer apierrors.APIStatus
	passes := apierrors.IsConflict(err) || apierrors.IsUnauthorized(err)
	return errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError && apiserver.Decided(err) && !passes
}

// writeEnd writes the end of a RayJob and nothing else of its last status, if that end is known.
func (c *Controller) writeEnd(ctx context.Context, object *unstructured.Unstructured, k tracked) error {
	if !k.endsJob(object.GetKind()) {
		return nil
	}
	err := c.cluster.ReplaceStatus(ctx, object, endedStatus(nil, k.record))
	if refuses(err) {
		return nil
	}
	return err
}

// homeStatus is the status of an object that moves: that of the object in its place or, before that
// has one and when it is lost, as KubeRay would write it. It is not known before the first answer,
// because an earlier process may have written more; noted is whether that has seen the end, too.
func (k *tracked) homeStatus(kind string, noted bool) (status map[string]any, known bool) {
	if !k.placed() {
		if k.endsJob(kind) {
			return endedStatus(nil, k.record), !noted // while it waited
		}
		return suspendedStatus(kind), true
	}
	phase := k.record.Phase
	switch {
	case phase == workload.Cancelled, kind == workload.KindRayCluster && phase.Final():
		return suspendedStatus(kind), !noted
	case !k.mirrored.asked:
		return nil, false
	}
	status = k.present()
	deployment, _ := status["jobDeploymentStatus"].(string)
	switch {
	case status != nil && (!phase.Final() || slices.Contains([]string{"Complete", "Failed", "ValidationFailed"}, deployment)):
		return status, true
	case phase.Final() && !noted:
		return endedStatus(status, k.record), true
	case phase != workload.Admitted && phase != workload.Dispatched:
		return nil, false
	case kind == workload.KindRayJob:
		return map[string]any{"jobDeploymentStatus": "Initializing"}, true
	}
	return map[string]any{}, true
}

// endsJob reports whether the object is a RayJob whose workload has ended, and was not cancelled.
func (k *tracked) endsJob(kind string) bool {
	return kind == workload.KindRayJob && k.record != nil && k.record.Phase.Final() && k.record.Phase != workload.Cancelled
}

// present is the status of the object in the place of the one that moves, in this attempt; nil while
// there is none.
func (k *tracked) present() (status map[string]any) {
	last := k.mirrored.last
	if last.Cluster != k.record.Cluster || last.Attempt != k.record.Attempt || json.Unmarshal(last.Status, &status) != nil {
		return nil
	}
	return status
}

// endedStatus is the status of a RayJob that has ended, as far as it was seen, with its end.
func endedStatus(seen map[string]any, record *workload.Record) map[string]any {
	status := map[string]any{}
	maps.Copy(status, seen)
	status["jobDeploymentStatus"], status["jobStatus"] = "Complete", "SUCCEEDED"
	if record.Phase == workload.Failed {
		status["jobDeploymentStatus"], status["jobStatus"] = "Failed", "FAILED"
		if record.Reason != nil {
			status["message"] = record.Reason.Message
		}
	}
	return status
}

// suspendedStatus is that of an object that waits.
func suspendedStatus(kind string) map[string]any {
	if kind == workload.KindRayJob {
		return map[string]any{"jobDeploymentStatus": "Suspended"}
	}
	return map[string]any{"state": "suspended"}
}
