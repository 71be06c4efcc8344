package kubecontroller

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/spec/workload"
)

// recordEvent records an event of an object. A workload that is admitted and starts has one
// event, that of its admission; news, such as another kind of reason, have one each. The success of a workload has none: the object's own status says it.
func (c *Controller) recordEvent(ctx context.Context, object *unstructured.Unstructured, id workload.ID, k tracked, news bool) error {
	state, reason, known := k.state()
	switch {
	case !known || state == string(workload.Succeeded):
		return nil
	case runs(state) && k.unannounced && !warns(state, reason):
		state, reason = string(workload.Admitted), nil
	case runs(state) && reason == nil:
		return nil
	case !news:
		return nil
	}
	occurrence, why := state, "workload "+string(id)+" is "+state
	if reason != nil {
		occurrence += string(reason.Kind) // a change of amounts alone is no event
		why = reason.Message
	}
	if k.lastEvent == occurrence {
		return nil
	}
	c.note(id, func(kept *tracked) {
		kept.lastEvent = occurrence
		kept.unannounced = kept.unannounced && occurrence != string(workload.Admitted)
	})
	return c.cluster.RecordEvent(ctx, object, warns(state, reason), eventReason(state), why)
}

// warns reports whether an event wants the attention of the workload's owner.
func warns(state string, reason *workload.Reason) bool {
	if state == "rejected" || state == string(workload.Failed) || state == string(workload.Evicting) {
		return true
	}
	if reason == nil {
		return false
	}
	switch reason.Kind {
	case workload.ReasonNeverFits, workload.ReasonNodeNotReady, workload.ReasonHeadReplaced, workload.ReasonPodLost, workload.ReasonNodeLost, workload.ReasonClusterLost,
		workload.ReasonClusterSilent, workload.ReasonPermissionEnded:
		return true
	}
	return false
}

// eventReason is the reason of the event that reports a state, such as MusterQueued.
func eventReason(state string) string {
	if state == "" {
		return "Muster"
	}
	return "Muster" + strings.ToUpper(state[:1]) + state[1:]
}

// runs reports whether a workload has its places: what is between its admission and its end.
func runs(phase string) bool {
	switch workload.Phase(phase) {
	case workload.Admitted, workload.Dispatched, workload.Running:
		return true
	}
	return false
}
