package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// healing deals with lost pods and lost places of started gangs: it notes what is lost,
// replaces places, and evicts a gang that is not whole again in time.
type healing struct {
	*lifecycle
	sizing *sizing
}

// checkReadiness notes whether a running gang has all its pods.
func (h *healing) checkReadiness(e *entry, now time.Time) {
	ready, all := h.readiness(e)
	if ready == all {
		mended := e.disruption.reported && e.Reason != nil && e.Reason.Kind == workload.ReasonPodLost
		e.disruption.since, e.disruption.reported = time.Time{}, false
		if mended {
			e.Reason = h.growthReason(e)
		}
		rules := h.rules(e)
		reported := !lossEvicts(e, &rules) && h.recordNewHead(e, now) // a job starts again, which its eviction reports
		if mended && !reported {
			h.emitChanged(e, now)
		}
		return
	}
	if e.disruption.since.IsZero() {
		e.disruption.since = now
	}
}

// recordLosses notes each pod of a running gang that is gone, has ended or is being
// deleted, even when another one has replaced it.
func (h *healing) recordLosses(e *entry, before, after []event.GangPod, now time.Time) {
	here := map[string]bool{}
	for _, pod := range after {
		here[pod.Name] = pod.Holds() && !pod.Deleting
	}
	for _, pod := range before {
		if pod.Attempt == e.Attempt && pod.Holds() && !pod.Deleting && pod.PodSet != submitterOf(e) && !here[pod.Name] {
			e.disruption.recordLoss(pod, now)
		}
	}
}

// recreatedByKubeRay reports whether a job lost a pod because KubeRay took its RayCluster
// away whole: it tries the job again with another one.
func (h *healing) recreatedByKubeRay(e *entry) bool {
	g := h.gangs[gangKey{e.Cluster, e.ID}]
	return e.Kind == workload.KindRayJob && !e.disruption.head && !slices.ContainsFunc(g.pods, func(p event.GangPod) bool {
		return p.RayCluster == e.disruption.rayCluster && p.Holds() && !p.Deleting
	})
}

// trackHead notes that the head pod of a running gang was replaced by another one in
// the same RayCluster. KubeRay's retries make another RayCluster.
func (h *healing) trackHead(e *entry, pods []event.GangPod, now time.Time) {
	for _, pod := range pods {
		if pod.Attempt != e.Attempt || pod.PodSet != setOf(e, workload.RoleHead) || !pod.Holds() || pod.Deleting {
			continue
		}
		if e.head.Name != "" && e.head.Name != pod.Name && e.head.RayCluster == pod.RayCluster {
			h.noteNewHead(e, pod)
			if e.disruption.lost.IsZero() {
				e.disruption.lost = now
			}
		}
		e.head = pod
	}
}

// checkHealDeadline deals with a running gang that has lacked pods for a while.
func (h *healing) checkHealDeadline(e *entry, rules *workload.Rules, now time.Time) {
	ready, all := h.readiness(e)
	message := fmt.Sprintf("%d of %d pods are ready", ready, all)
	reason := &workload.Reason{Kind: workload.ReasonPodLost}
	switch {
	case h.passed(healDeadline, e, rules, now):
		if h.inquiries.askWhetherAbsent(e, now) && !h.restarted(healDeadline, e, rules, now) {
			reason.Message = message + fmt.Sprintf(" %s after a pod was lost", rules.HealWithin())
			if why := h.waitsFor(e); why != "" {
				reason.Message += ": " + why
			}
			h.evictNow(e, reason, now)
		}
	case !e.disruption.reported:
		e.disruption.reported = true
		if mayExplain(e, workload.ReasonPodLost) {
			reason.Message = message + fmt.Sprintf("; KubeRay has %s to replace the others", rules.HealWithin())
			e.Reason = reason
			h.emitChanged(e, now)
		}
	}
}
