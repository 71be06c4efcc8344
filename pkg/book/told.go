package book

import (
	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// What one cluster may fill the memory with, more than Kubernetes can run in one.
const (
	nodesMost = 10_000
	podsMost  = 200_000 // that carry labels of workloads
)

// told counts what is in memory of what clusters tell, and bounds it: the watcher of
// one cluster, or the thief of its key, must not take the memory of all.
type told struct {
	nodes, pods         map[string]int // by cluster
	nodesMost, podsMost int
	refused             int // observations that were one too many
	// on are the workloads that have strays on a node, known or not: a new node must
	// not have all pods of all clusters looked at.
	on map[admission.NodeKey]map[workload.ID]bool
}

func newTold() told {
	return told{nodes: map[string]int{}, pods: map[string]int{}, nodesMost: nodesMost, podsMost: podsMost, on: map[admission.NodeKey]map[workload.ID]bool{}}
}

// full reports whether a cluster has as many nodes as it may, and counts that.
func (t *told) full(cluster string) bool {
	if t.nodes[cluster] < t.nodesMost {
		return false
	}
	t.refused++
	return true
}

// takes reports whether pods may take the place of those of old, which may be nil,
// and counts them or the refusal. Fewer pods than before are always taken.
func (t *told) takes(cluster string, old *gang, pods []event.GangPod) bool {
	more := len(pods)
	if old != nil {
		more -= len(old.seen)
	}
	if more > 0 && t.pods[cluster]+more > t.podsMost {
		t.refused++
		return false
	}
	t.pods[cluster] += more
	return true
}

// strays notes whether a workload has strays on a node.
func (t *told) strays(on admission.NodeKey, id workload.ID, has bool) {
	switch {
	case has && t.on[on] == nil:
		t.on[on] = map[workload.ID]bool{id: true}
	case has:
		t.on[on][id] = true
	default:
		if delete(t.on[on], id); len(t.on[on]) == 0 {
			delete(t.on, on)
		}
	}
}

// putNode notes a node that was not known, dropNode forgets one.
func (b *Book) putNode(key admission.NodeKey, n *node) {
	b.nodes[key] = n
	b.told.nodes[key.Cluster]++
}

func (b *Book) dropNode(key admission.NodeKey) {
	if b.nodes[key] != nil {
		delete(b.nodes, key)
		b.told.nodes[key.Cluster]--
	}
}

// TooMuchTold returns how many observations of the term were not taken in, because
// their cluster had told of as many nodes or pods as one may have.
func (b *Book) TooMuchTold() int { return b.told.refused }
