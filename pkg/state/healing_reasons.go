package state

import (
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// noteNewHead notes that the head pod of a running gang was replaced by another one.
func (h *healing) noteNewHead(e *entry, replacement event.GangPod) {
	e.disruption.head = true
	e.disruption.headNews = fmt.Sprintf("the head pod %s was replaced by %s: Ray lost its jobs, tasks and actors, unless it keeps them outside of the head pod (gcsFaultToleranceOptions); connect and submit again",
		e.head.Name, replacement.Name)
}

// recordNewHead records of a running gang that its head pod was replaced. What is still wrong
// with it comes first. It reports whether it did.
func (h *healing) recordNewHead(e *entry, now time.Time) (reported bool) {
	news := e.disruption.headNews
	if news == "" || !mayExplain(e, workload.ReasonHeadReplaced) {
		return false
	}
	e.disruption.headNews = ""
	e.Reason = &workload.Reason{Kind: workload.ReasonHeadReplaced, Message: news}
	h.emitChanged(e, now)
	return true
}

// explainNode records of the running gangs on a node that it is not ready, what follows and
// when; or that it is ready again.
func (h *healing) explainNode(n *node, now time.Time) {
	for _, e := range h.holders(n) {
		if e.Phase != workload.Running || h.frozen(e) {
			continue
		}
		reported := e.Reason != nil && e.Reason.Kind == workload.ReasonNodeNotReady
		broken := h.notReadyNodes(e)
		switch {
		case broken == "" && reported:
			e.Reason = h.growthReason(e)
		case broken == "" || !mayExplain(e, workload.ReasonNodeNotReady):
			continue
		default:
			e.Reason = &workload.Reason{Kind: workload.ReasonNodeNotReady, Message: broken + ". " + h.afterGrace(e)}
		}
		h.emitChanged(e, now)
	}
}

// notReadyNodes names the nodes of a gang that are not ready, with since when and until when
// that is tolerated; empty when all are.
func (l *lifecycle) notReadyNodes(e *entry) string {
	const named = 3
	var texts []string
	seen, more := map[string]bool{}, 0
	for _, p := range e.Placements {
		n := l.nodes[admission.NodeKey{Cluster: e.Cluster, Name: p.Node}]
		if n == nil || seen[p.Node] || n.present && n.Ready {
			continue
		}
		seen[p.Node] = true
		text := fmt.Sprintf("node %s of cluster %s is gone", p.Node, e.Cluster)
		if n.present && !n.notReadySince.IsZero() {
			text = fmt.Sprintf("node %s of cluster %s is not ready since %s", p.Node, e.Cluster, n.notReadySince.UTC().Format(time.RFC3339))
			if l.grace > 0 {
				text += fmt.Sprintf(", which is tolerated until %s", n.notReadySince.Add(l.grace).UTC().Format(time.RFC3339))
			}
		}
		if len(texts) == named {
			more++
			continue
		}
		texts = append(texts, text)
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// afterGrace returns what follows for a running gang when a node of it stays not ready.
func (h *healing) afterGrace(e *entry) string {
	lost := map[slot]int{}
	for _, p := range e.Placements {
		n := h.nodes[admission.NodeKey{Cluster: e.Cluster, Name: p.Node}]
		if n != nil && !(n.present && n.Ready) {
			lost[slot{p.PodSet, p.Node}] = p.Pods
		}
	}
	switch h.outcomeOfLoss(e, lost) {
	case keepsPlaces:
		return "After that the gang keeps its places, because the database refuses to store other ones"
	case losesHead:
		return "After that the gang starts again, because its head pod is there"
	case losesSubmitter:
		return "After that the gang starts again, because the submitter of the job is there"
	case evictedByPolicy:
		return "After that the gang starts again, because onPodLoss is evict"
	case hasTiedPlaces:
		return "After that the gang starts again: no pod is moved alone, because " + whyTied
	case replacesPlaces:
	}
	return fmt.Sprintf("After that its pods get other nodes, or the gang starts again when no other place is free or not all pods are ready within %s", h.rules(e).HealWithin())
}
