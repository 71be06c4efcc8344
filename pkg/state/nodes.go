package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// node is a node as last observed, and what gangs take of it.
type node struct {
	capacity.Node
	version  event.Version
	present  bool
	reserved resource.List
	// unreserved is what pods of gangs take here beyond their reservations.
	unreserved map[workload.ID]resource.List
	// notReadySince is zero while the node is ready; overdue means that the grace
	// since then is over. Neither is stored: a new term grants the grace again.
	notReadySince time.Time
	overdue       bool
	// holders are the workloads that have pods reserved here, and how many.
	holders map[workload.ID]int
}

// used is what pods outside any reservation take.
func (n *node) used() resource.List {
	used := n.Unmanaged
	for _, amounts := range n.unreserved {
		used = used.Plus(amounts)
	}
	return used
}

// unreservedRequests is what unreserved pods take of the node.
func (n *node) unreservedRequests() resource.List {
	sum := resource.List{}
	for _, amounts := range n.unreserved {
		sum = sum.Plus(amounts)
	}
	return sum
}

// lost reports that the node is gone or was not ready for the grace. Its places are replaced;
// its pods may still run.
func (n *node) lost() bool { return !n.present || n.overdue }

// healthy reports that nothing on the node needs another place.
func (n *node) healthy() bool {
	return n.present && n.Ready && !n.overdue && !n.Cordoned && len(n.Taints) == 0 && n.excess() == ""
}

// excess is a resource of which more is taken than there is; empty when there is
// none.
func (n *node) excess() resource.Name {
	free := n.Allocatable.Minus(n.used()).Minus(n.reserved)
	for _, name := range free.Names() {
		if free[name] < 0 {
			return name
		}
	}
	return ""
}

func lostBecause(n *node, grace time.Duration) string {
	if !n.present {
		return fmt.Sprintf("node %s of cluster %s is gone", n.Name, n.Cluster)
	}
	return fmt.Sprintf("node %s of cluster %s has not been ready for %s", n.Name, n.Cluster, grace)
}

// putNode notes a node that was not known, dropNode forgets one.
func (t *tables) putNode(key admission.NodeKey, n *node) {
	t.nodes[key] = n
	t.observed.nodes[key.Cluster]++
}

func (t *tables) dropNode(key admission.NodeKey) {
	if t.nodes[key] != nil {
		delete(t.nodes, key)
		t.observed.nodes[key.Cluster]--
	}
}

// insertNode takes in a node as stored; what is reserved on it stays.
func (t *tables) insertNode(n StoredNode) {
	key := admission.NodeKey{Cluster: n.Cluster, Name: n.Name}
	known := t.nodes[key]
	if known == nil {
		known = &node{reserved: resource.List{}, unreserved: map[workload.ID]resource.List{}, holders: map[workload.ID]int{}}
		t.putNode(key, known)
	}
	known.Node, known.version, known.present = n.Node, n.Version, n.Present
	delete(t.notReady, key)
	if n.Present && !n.Ready {
		t.notReady[key] = true
	}
}

// syncNode shows a node to admission, or takes it away.
func (t *tables) syncNode(key admission.NodeKey) {
	n := t.nodes[key]
	if n == nil || !n.present || t.quarantinedNodes[key] {
		t.admission.RemoveNode(key)
		return
	}
	t.admission.SetExtra(key, n.unreservedRequests())
	t.admission.SetNode(n.Node)
}

// holders are the workloads that have places on a node, in order.
func (t *tables) holders(n *node) []*entry {
	var holders []*entry
	for id := range n.holders {
		holders = append(holders, t.live.Get(id))
	}
	slices.SortFunc(holders, func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	return holders
}

func (t *tables) nodeKeys() []admission.NodeKey {
	return slices.SortedFunc(maps.Keys(t.nodes), compareKeys)
}

func compareKeys(x, y admission.NodeKey) int {
	return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Name, y.Name))
}

// domains are the values of a node label where pods of the sets have places.
func (t *tables) domains(e *entry, key string, sets []string) (values []string) {
	for _, p := range e.Placements {
		n := t.nodes[admission.NodeKey{Cluster: e.Cluster, Name: p.Node}]
		if value, labelled := n.Labels[key]; labelled && slices.Contains(sets, p.PodSet) && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

// constrainToDomain keeps the moved pods of a set in the topology domain of those that
// stay, when the set is required to be in one.
func (t *tables) constrainToDomain(e *entry, set *workload.PodSet, kept []workload.Placement) {
	topology := t.inTopology(e, set).Topology
	if topology == nil || topology.Mode != workload.TopologyRequired {
		return
	}
	i := slices.IndexFunc(kept, func(p workload.Placement) bool { return p.PodSet == set.Name })
	if i < 0 {
		return
	}
	selector := maps.Clone(set.Template.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	labels := t.nodes[admission.NodeKey{Cluster: e.Cluster, Name: kept[i].Node}].Labels
	for _, key := range workload.LevelKeys(workload.LevelOn(topology.Level, labels)) {
		selector[key] = labels[key]
	}
	set.Template.NodeSelector = selector
}

// inTopology returns a pod set with the domains of the Topology of its flavors.
func (t *tables) inTopology(e *entry, set *workload.PodSet) workload.PodSet {
	if set.Topology == nil {
		return *set
	}
	return t.admission.Quota().InTopology([]workload.PodSet{*set}, e.Flavors)[0]
}
