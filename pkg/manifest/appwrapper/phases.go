package appwrapper

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// condition is a condition of v1beta2, one per type.
type condition struct {
	kind, reason, message string
	holds                 bool
}

// statusV1beta2 words the view in phases and conditions of v1beta2. Quota is
// "reserved" from the commit that reserves the gang's nodes until its pods have
// been seen gone.
func statusV1beta2(old map[string]any, v View) map[string]any {
	phase := phaseOf(v)
	var conditions []any
	for _, c := range conditionsOf(v, phase) {
		conditions = append(conditions, c.write(old, v.Now))
	}
	status := map[string]any{"phase": phase, "conditions": conditions}
	if v.Record != nil {
		status["resettingCount"] = v.Record.Attempt - 1
	}
	return status
}

func phaseOf(v View) string {
	if v.Rejected != nil {
		return "Failed"
	}
	if v.Record == nil {
		return "Suspended"
	}
	switch v.Record.Phase {
	case workload.Queued:
		return "Suspended"
	case workload.Admitted, workload.Dispatched:
		return "Resuming"
	case workload.Running:
		return "Running"
	case workload.Evicting:
		return "Resetting"
	case workload.Succeeded:
		return "Succeeded"
	case workload.Failed, workload.Cancelled:
		return "Failed" // the AppWrapper stays, and v1beta2 has no other end
	}
	return "Terminating"
}

func conditionsOf(v View, phase string) []condition {
	r := v.Record
	if r == nil {
		c := condition{kind: "QuotaReserved", reason: phase}
		if v.Rejected != nil {
			c.message = v.Rejected.Message
		}
		return append([]condition{c}, warned(v)...)
	}
	quota := condition{kind: "QuotaReserved", holds: r.Holding, reason: phase, message: why(r)}
	if r.Phase == workload.Queued && r.Reason != nil {
		quota.reason = string(r.Reason.Kind)
	}
	if r.Holding && r.Phase != workload.Evicting {
		quota.message = "Suspend is false"
	}
	deployed := condition{kind: "ResourcesDeployed", holds: r.Holding && !r.Times.Dispatched.IsZero(), reason: phase}
	all := []condition{quota, deployed}
	if r.Holding {
		ready := condition{kind: "PodsReady", holds: r.Phase == workload.Running, reason: "InsufficientPodsReady"}
		if ready.holds {
			ready.reason = "SufficientPodsReady"
		}
		ready.message = fmt.Sprintf("%d pods running; %d pods succeeded", v.Pods.Running, v.Pods.Succeeded)
		all = append(all, ready)
	}
	if unhealthy := health(r, v); unhealthy.reason != "" {
		all = append(all, unhealthy)
	}
	if r.Phase == workload.Evicting || r.Phase == workload.Cancelling {
		all = append(all, condition{kind: "DeletingResources", holds: true, reason: "DeletionInitiated", message: why(r)})
	}
	return append(all, warned(v)...)
}

// SucceededAt reads from a status of v1beta2 since when the AppWrapper has
// succeeded with all its pods gone; false when it has not.
func SucceededAt(status map[string]any) (at time.Time, succeeded bool) {
	if status["phase"] != "Succeeded" {
		return at, false
	}
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		if text(c, "type") == "QuotaReserved" && text(c, "status") == "False" {
			at, err := time.Parse(time.RFC3339, text(c, "lastTransitionTime"))
			return at, err == nil
		}
	}
	return at, false
}

// health words what keeps a started gang from running.
func health(r *workload.Record, v View) condition {
	c := condition{kind: "Unhealthy", holds: true, message: why(r)}
	switch {
	case r.Phase == workload.Failed && r.Reason != nil && r.Reason.Kind == workload.ReasonRefused:
		c.reason = "CreateFailed"
	case r.Phase == workload.Failed:
		c.reason = "FailedComponent"
	case r.Phase == workload.Evicting, r.Phase == workload.Cancelled:
		c.reason = cause(r)
	case v.Pods.Failed > 0 && !r.Phase.Final():
		c.reason, c.message = "FoundFailedPods", fmt.Sprintf("%d pods failed", v.Pods.Failed)
	case r.Phase == workload.Dispatched && r.Reason != nil:
		c.reason = "InsufficientPodsReady"
	case r.Phase == workload.Running:
		c.holds, c.reason = false, "FoundNoFailedPods"
	}
	return c
}

// warned is a condition of Muster's own: what was accepted and does nothing.
func warned(v View) []condition {
	if len(v.Warnings) == 0 {
		return nil
	}
	return []condition{{kind: "Warned", holds: true, reason: "FieldsWithoutEffect", message: warnings(v)}}
}

// write keeps the moment of the last change.
func (c condition) write(old map[string]any, now time.Time) map[string]any {
	status := "False"
	if c.holds {
		status = "True"
	}
	at := now.UTC().Format(time.RFC3339)
	list, _ := old["conditions"].([]any)
	for _, item := range list {
		before, _ := item.(map[string]any)
		since := text(before, "lastTransitionTime")
		if text(before, "type") == c.kind && text(before, "status") == status && since > "2000" {
			at = since
		}
	}
	return map[string]any{"type": c.kind, "status": status, "reason": c.reason, "message": c.message, "lastTransitionTime": at}
}
