package state

import (
	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// What one cluster may fill the memory with, more than Kubernetes can run in one.
const (
	maxNodes = 10_000
	maxPods  = 200_000 // that carry labels of workloads

	maxNamespaces = 20_000
)

// observedLimits counts what is in memory of what clusters report, and bounds it: the watcher of
// one cluster, or the thief of its key, must not take the memory of all.
type observedLimits struct {
	nodes, pods       map[string]int // by cluster
	maxNodes, maxPods int
	refused           int // observations that were one too many
	// on are the workloads that have unreserved pods on a node, known or not: a new node must
	// not have all pods of all clusters looked at.
	on map[admission.NodeKey]map[workload.ID]bool
}

func newObservedLimits() observedLimits {
	return observedLimits{nodes: map[string]int{}, pods: map[string]int{}, maxNodes: maxNodes, maxPods: maxPods, on: map[admission.NodeKey]map[workload.ID]bool{}}
}

// nodesFull reports whether a cluster has as many nodes as it may, and counts that.
func (l *observedLimits) nodesFull(cluster string) bool {
	if l.nodes[cluster] < l.maxNodes {
		return false
	}
	l.refused++
	return true
}

// replacePods reports whether pods may take the place of those of old, which may be nil,
// and counts them or the refusal. Fewer pods than before are always taken.
func (l *observedLimits) replacePods(cluster string, old *gang, pods []event.GangPod) bool {
	more := len(pods)
	if old != nil {
		more -= len(old.seen)
	}
	if more > 0 && l.pods[cluster]+more > l.maxPods {
		l.refused++
		return false
	}
	l.pods[cluster] += more
	return true
}

// setUnreserved notes whether a workload has unreserved pods on a node.
func (l *observedLimits) setUnreserved(on admission.NodeKey, id workload.ID, has bool) {
	switch {
	case has && l.on[on] == nil:
		l.on[on] = map[workload.ID]bool{id: true}
	case has:
		l.on[on][id] = true
	default:
		if delete(l.on[on], id); len(l.on[on]) == 0 {
			delete(l.on, on)
		}
	}
}

// RefusedObservations returns how many observations of the term were not taken in, because
// their cluster had reported as many nodes, pods or namespaces as one may have.
func (s *State) RefusedObservations() int { return s.observed.refused }
