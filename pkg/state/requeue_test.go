package state

import (
	"slices"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
)

// neverEvicts are the kinds of reasons for which no workload is evicted.
var neverEvicts = []workload.ReasonKind{
	workload.ReasonFit, workload.ReasonQuota, workload.ReasonTopology, workload.ReasonNeverFits, workload.ReasonHeld,
	workload.ReasonWaitingForEviction, workload.ReasonProvisioning, workload.ReasonAdmissionCheck, workload.ReasonBehindHead, workload.ReasonReserved, workload.ReasonUnknown, workload.ReasonPending, workload.ReasonNoNodes,
	workload.ReasonStarting, workload.ReasonNodeNotReady, workload.ReasonClusterSilent, workload.ReasonPermissionEnded, workload.ReasonHeadReplaced, workload.ReasonGrowing, workload.ReasonBackoff,
	workload.ReasonShrunk, workload.ReasonMaxRunTime, workload.ReasonIdle, workload.ReasonBesidePlan, workload.ReasonCancelled, workload.ReasonReleased,
	workload.ReasonDeleted, workload.ReasonRefused, workload.ReasonJobEnded, workload.ReasonInvalid, workload.ReasonDuplicate,
	workload.ReasonFull, workload.ReasonQueue, workload.ReasonNotStorable, workload.ReasonForbidden,
}

// A kind of reason that evicts and has no rule would be tried again at once, for ever.
func TestEachKindOfReasonHasARequeueRuleOrEvictsNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range workload.ReasonKinds() {
		_, evicts := requeueRules[kind]
		if never := slices.Contains(neverEvicts, kind); evicts == never {
			t.Errorf("%s: has a requeue rule: %t, is listed as never evicting: %t; want one of both", kind, evicts, never)
		}
	}
	for kind, rule := range requeueRules {
		if rule.fault && rule.backoff == nil {
			t.Errorf("%s: an eviction for it counts as a fault, and the next attempt begins at once", kind)
		}
	}
}
