// Package picture keeps what is seen of one cluster: its nodes, what pods that
// Muster does not manage use of them, and the pods of each workload. It tells
// which of that has changed since it was last taken, so that the work to
// publish grows with what changes.
//
// It is not for watching (package watch) nor for publishing (package publish).
// The package is pure: no clock, no I/O; a Picture is not safe for concurrent
// use.
package picture

import (
	"cmp"
	"maps"
	"slices"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Pod names a pod of the cluster.
type Pod struct{ Namespace, Name string }

// Unmanaged is a pod that Muster does not manage and that takes room: it is
// bound and has not ended.
type Unmanaged struct {
	Node     string
	Requests resource.List
	Ports    []workload.HostPort // of its node that it takes
}

// Member is a pod of a workload.
type Member struct {
	Workload workload.ID
	UID      string
	Owner    Owner // what controls the pod
	event.GangPod
}

// Picture is what is seen. The zero value is not usable; see New.
type Picture struct {
	cluster    string
	nodes      map[string]capacity.Node // without what is unmanaged
	unmanaged  map[Pod]Unmanaged
	onNode     map[string]map[Pod]struct{} // unmanaged pods by node, known or not
	members    map[Pod]Member
	gangs      map[workload.ID]map[Pod]struct{}
	owners     map[string]Owner            // by UID
	controlled map[string]map[Pod]struct{} // members by the UID of their controller
	// apart are members that are not told of as such, see told.
	apart map[workload.ID][]Pod
	dirty queue
}

// New returns the picture of a cluster of which nothing has been seen.
func New(cluster string) *Picture {
	return &Picture{
		cluster: cluster, nodes: map[string]capacity.Node{},
		unmanaged: map[Pod]Unmanaged{}, onNode: map[string]map[Pod]struct{}{},
		members: map[Pod]Member{}, gangs: map[workload.ID]map[Pod]struct{}{},
		owners: map[string]Owner{}, controlled: map[string]map[Pod]struct{}{}, apart: map[workload.ID][]Pod{},
		dirty: queue{has: map[Key]struct{}{}},
	}
}

// SetNode records a node as seen; its Unmanaged and UsedPorts are ignored.
func (p *Picture) SetNode(node capacity.Node) {
	node.Unmanaged, node.UsedPorts = nil, nil
	if known, ok := p.nodes[node.Name]; ok && sameNode(known, node) {
		return
	}
	p.nodes[node.Name] = node
	p.dirty.add(Key{Node: node.Name})
}

// RemoveNode records that a node is gone.
func (p *Picture) RemoveNode(name string) {
	if _, ok := p.nodes[name]; !ok {
		return
	}
	delete(p.nodes, name)
	p.dirty.add(Key{Node: name})
}

// ReplaceNodes records that exactly these nodes exist.
func (p *Picture) ReplaceNodes(nodes []capacity.Node) {
	keep := make(map[string]struct{}, len(nodes))
	for _, node := range nodes {
		keep[node.Name] = struct{}{}
		p.SetNode(node)
	}
	for _, name := range sortedMissing(p.nodes, keep) {
		p.RemoveNode(name)
	}
}

// SetUnmanaged records a pod that takes room and is not managed.
func (p *Picture) SetUnmanaged(name Pod, pod Unmanaged) {
	known, ok := p.unmanaged[name]
	if ok && known.Node == pod.Node && known.Requests.Equal(pod.Requests) && slices.Equal(known.Ports, pod.Ports) {
		return
	}
	if ok {
		p.RemoveUnmanaged(name)
	}
	p.unmanaged[name] = pod
	insert(p.onNode, pod.Node, name)
	p.touchNode(pod.Node)
}

// RemoveUnmanaged records that a pod takes room no longer.
func (p *Picture) RemoveUnmanaged(name Pod) {
	known, ok := p.unmanaged[name]
	if !ok {
		return
	}
	delete(p.unmanaged, name)
	remove(p.onNode, known.Node, name)
	p.touchNode(known.Node)
}

// ReplaceUnmanaged records that exactly these pods take room and are not
// managed.
func (p *Picture) ReplaceUnmanaged(pods map[Pod]Unmanaged) {
	for _, name := range sortedPods(p.unmanaged) {
		if _, ok := pods[name]; !ok {
			p.RemoveUnmanaged(name)
		}
	}
	for _, name := range sortedPods(pods) {
		p.SetUnmanaged(name, pods[name])
	}
}

// SetMember records a pod of a workload.
func (p *Picture) SetMember(name Pod, member Member) {
	known, ok := p.members[name]
	if ok && sameMember(known, member) {
		return
	}
	if ok && (known.Workload != member.Workload || known.Owner.Controller != member.Owner.Controller) {
		p.RemoveMember(name)
	}
	p.members[name] = member
	insert(p.gangs, member.Workload, name)
	if member.Owner.Controller != "" {
		insert(p.controlled, member.Owner.Controller, name)
	}
	p.dirty.add(Key{Gang: member.Workload})
}

// RemoveMember records that a pod of a workload is gone.
func (p *Picture) RemoveMember(name Pod) {
	known, ok := p.members[name]
	if !ok {
		return
	}
	delete(p.members, name)
	remove(p.gangs, known.Workload, name)
	remove(p.controlled, known.Owner.Controller, name)
	p.dirty.add(Key{Gang: known.Workload})
}

// ReplaceMembers records that exactly these pods of workloads exist.
func (p *Picture) ReplaceMembers(members map[Pod]Member) {
	for _, name := range sortedPods(p.members) {
		if _, ok := members[name]; !ok {
			p.RemoveMember(name)
		}
	}
	for _, name := range sortedPods(members) {
		p.SetMember(name, members[name])
	}
}

// touchNode marks a known node as changed; of unknown nodes nothing is told.
func (p *Picture) touchNode(name string) {
	if _, ok := p.nodes[name]; ok {
		p.dirty.add(Key{Node: name})
	}
}

func insert[K comparable](index map[K]map[Pod]struct{}, key K, name Pod) {
	if index[key] == nil {
		index[key] = map[Pod]struct{}{}
	}
	index[key][name] = struct{}{}
}

func remove[K comparable](index map[K]map[Pod]struct{}, key K, name Pod) {
	delete(index[key], name)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

func sortedMissing[V any](have map[string]V, keep map[string]struct{}) []string {
	var missing []string
	for name := range have {
		if _, ok := keep[name]; !ok {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// sortedPods puts pods in order, so that the same list is told in the same order.
func sortedPods[V any](pods map[Pod]V) []Pod {
	return slices.SortedFunc(maps.Keys(pods), func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func sameNode(a, b capacity.Node) bool {
	return a.Cluster == b.Cluster && a.Name == b.Name && a.Ready == b.Ready && a.Cordoned == b.Cordoned &&
		maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Taints, b.Taints) && a.Allocatable.Equal(b.Allocatable)
}

func sameMember(a, b Member) bool {
	requests := a.Requests.Equal(b.Requests)
	return requests && a.Workload == b.Workload && a.UID == b.UID && a.Owner == b.Owner && a.Name == b.Name && a.Attempt == b.Attempt && a.PodSet == b.PodSet &&
		a.Node == b.Node && a.Phase == b.Phase && a.Ready == b.Ready && a.Deleting == b.Deleting && a.ExitCode == b.ExitCode
}
