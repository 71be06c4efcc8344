// Package observed keeps the observed state of one cluster: its nodes, what pods that
// Muster does not manage use of them, and the pods of each workload. It tracks what has
// changed since the last drain, so that publishing costs as much as the changes.
//
// It is not for watching (package watch) nor for publishing (package publish).
// The package is pure: no clock, no I/O; a Cache is not safe for concurrent use.
package observed

import (
	"cmp"
	"maps"
	"slices"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Pod names a pod of the cluster.
type Pod struct{ Namespace, Name string }

// Unmanaged is a pod that Muster does not manage and that uses resources: it is bound
// and has not ended.
type Unmanaged struct {
	Node     string
	Requests resource.List
	Ports    []workload.HostPort // host ports in use
}

// Member is a pod of a workload.
type Member struct {
	Workload workload.ID
	UID      string
	Owner    Owner // the pod's controller
	event.GangPod
}

// Cache is the observed state of a cluster. The zero value is not usable; see New.
type Cache struct {
	cluster    string
	nodes      map[string]capacity.Node // without unmanaged use
	unmanaged  map[Pod]Unmanaged
	onNode     map[string]map[Pod]struct{}  // unmanaged pods by node, known or not
	namespaces map[string]map[string]string // their labels
	// limits are of each LimitRange, by namespace and name.
	limits map[string]map[string]Limits
	// namespacesListed: all namespaces are recorded.
	namespacesListed bool
	kinds            []workload.ObjectKind // that the cluster serves; nil is unknown
	// recalled are namespaces that earlier watchers published; nil once all are recorded.
	recalled   []Key
	members    map[Pod]Member
	gangs      map[workload.ID]map[Pod]struct{}
	owners     map[string]Owner            // by UID
	controlled map[string]map[Pod]struct{} // members by the UID of their controller
	// excess are members that do not fit their gang's message, see split.
	excess map[workload.ID][]Pod
	dirty  queue
}

// New returns an empty Cache.
func New(cluster string) *Cache {
	return &Cache{
		cluster: cluster, nodes: map[string]capacity.Node{},
		unmanaged: map[Pod]Unmanaged{}, onNode: map[string]map[Pod]struct{}{},
		namespaces: map[string]map[string]string{}, limits: map[string]map[string]Limits{},
		members: map[Pod]Member{}, gangs: map[workload.ID]map[Pod]struct{}{},
		owners: map[string]Owner{}, controlled: map[string]map[Pod]struct{}{}, excess: map[workload.ID][]Pod{},
		dirty: queue{has: map[Key]struct{}{}},
	}
}

// SetNode records a node; its Unmanaged and UsedPorts are ignored.
func (p *Cache) SetNode(node capacity.Node) {
	node.Unmanaged, node.UsedPorts = nil, nil
	if known, ok := p.nodes[node.Name]; ok && sameNode(known, node) {
		return
	}
	p.nodes[node.Name] = node
	p.dirty.add(Key{Node: node.Name})
}

// RemoveNode records that a node is gone.
func (p *Cache) RemoveNode(name string) {
	if _, ok := p.nodes[name]; !ok {
		return
	}
	delete(p.nodes, name)
	p.dirty.add(Key{Node: name})
}

// ReplaceNodes records that exactly these nodes exist.
func (p *Cache) ReplaceNodes(nodes []capacity.Node) {
	keep := make(map[string]struct{}, len(nodes))
	for _, node := range nodes {
		keep[node.Name] = struct{}{}
		p.SetNode(node)
	}
	for _, name := range sortedMissing(p.nodes, keep) {
		p.RemoveNode(name)
	}
}

// SetUnmanaged records an unmanaged pod that uses resources.
func (p *Cache) SetUnmanaged(name Pod, pod Unmanaged) {
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

// RemoveUnmanaged records that an unmanaged pod does not use resources any more.
func (p *Cache) RemoveUnmanaged(name Pod) {
	known, ok := p.unmanaged[name]
	if !ok {
		return
	}
	delete(p.unmanaged, name)
	remove(p.onNode, known.Node, name)
	p.touchNode(known.Node)
}

// ReplaceUnmanaged records that exactly these unmanaged pods use resources.
func (p *Cache) ReplaceUnmanaged(pods map[Pod]Unmanaged) {
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
func (p *Cache) SetMember(name Pod, member Member) {
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
func (p *Cache) RemoveMember(name Pod) {
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
func (p *Cache) ReplaceMembers(members map[Pod]Member) {
	for _, name := range sortedPods(p.members) {
		if _, ok := members[name]; !ok {
			p.RemoveMember(name)
		}
	}
	for _, name := range sortedPods(members) {
		p.SetMember(name, members[name])
	}
}

// touchNode marks a node as changed, if it is known.
func (p *Cache) touchNode(name string) {
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

// sortedPods returns the pods in a deterministic order.
func sortedPods[V any](pods map[Pod]V) []Pod {
	return slices.SortedFunc(maps.Keys(pods), func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func sameNode(a, b capacity.Node) bool {
	return a.Cluster == b.Cluster && a.Name == b.Name && a.Ready == b.Ready && a.Cordoned == b.Cordoned &&
		a.Created.Equal(b.Created) && maps.Equal(a.Labels, b.Labels) && slices.Equal(a.Taints, b.Taints) && a.Allocatable.Equal(b.Allocatable)
}

func sameMember(a, b Member) bool {
	requests := a.Requests.Equal(b.Requests)
	return requests && a.Workload == b.Workload && a.UID == b.UID && a.Owner == b.Owner && a.Name == b.Name && a.Attempt == b.Attempt && a.PodSet == b.PodSet &&
		a.Node == b.Node && a.Phase == b.Phase && a.Ready == b.Ready && a.Deleting == b.Deleting && a.ExitCode == b.ExitCode && a.Waits == b.Waits
}
