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

// Key names a node, a gang or a namespace.
type Key struct {
	Node      string
	Gang      workload.ID
	Namespace string
}

// queue holds keys in the order in which they were added, each once.
type queue struct {
	order []Key
	has   map[Key]struct{}
}

func (q *queue) add(key Key) {
	if _, ok := q.has[key]; ok {
		return
	}
	q.has[key] = struct{}{}
	q.order = append(q.order, key)
}

func (q *queue) drain(limit int) []Key {
	taken := slices.Clone(q.order[:min(limit, len(q.order))])
	q.order = q.order[len(taken):]
	for _, key := range taken {
		delete(q.has, key)
	}
	if len(q.order) == 0 {
		q.order = nil // frees the drained array
	}
	return taken
}

// Changed returns the number of changed nodes, gangs and namespaces.
func (p *Cache) Changed() int { return len(p.dirty.order) }

// Drain returns and unmarks at most limit changed things, oldest change first.
// A caller that fails to publish one marks it again with MarkChanged.
func (p *Cache) Drain(limit int) []Key { return p.dirty.drain(limit) }

// MarkChanged marks things as changed.
func (p *Cache) MarkChanged(keys ...Key) {
	for _, key := range keys {
		p.dirty.add(key)
	}
}

// MarkAllChanged marks everything that is observed as changed.
func (p *Cache) MarkAllChanged() {
	nodes, gangs := p.Seen()
	for _, node := range nodes {
		p.dirty.add(Key{Node: node})
	}
	for _, gang := range gangs {
		p.dirty.add(Key{Gang: gang})
	}
	for _, namespace := range p.Namespaces() {
		p.dirty.add(Key{Namespace: namespace})
	}
}

// Seen lists the nodes and the workloads with pods, sorted.
func (p *Cache) Seen() ([]string, []workload.ID) {
	return slices.Sorted(maps.Keys(p.nodes)), slices.Sorted(maps.Keys(p.gangs))
}

// GangSize returns the number of observed pods of a workload.
func (p *Cache) GangSize(id workload.ID) int { return len(p.gangs[id]) }

// Sizes returns the number of nodes, of unmanaged pods, and of gangs.
func (p *Cache) Sizes() (nodes, unmanaged, gangs int) {
	return len(p.nodes), len(p.unmanaged), len(p.gangs)
}

// Observation returns the present state of what a key names, and whether it is gone.
func (p *Cache) Observation(key Key, version event.Version) (payload event.Payload, gone bool) {
	if key.Gang != "" {
		pods, chains := p.pods(key.Gang)
		return &event.GangObserved{Version: version, Cluster: p.cluster, Workload: key.Gang, Pods: pods, Chains: chains}, len(pods) == 0
	}
	if key.Namespace != "" {
		return p.namespace(key.Namespace, version)
	}
	node, ok := p.node(key.Node)
	if !ok {
		return &event.NodeRemoved{Version: version, Cluster: p.cluster, Node: key.Node}, true
	}
	return &event.NodeObserved{Version: version, Node: node}, false
}

// node recomputes the unmanaged use instead of keeping a running sum, because a
// saturated sum cannot be subtracted from.
func (p *Cache) node(name string) (capacity.Node, bool) {
	node, ok := p.nodes[name]
	if !ok {
		return node, false
	}
	used := resource.List{}
	for pod := range p.onNode[name] {
		used = used.Plus(p.unmanaged[pod].Requests)
		node.UsedPorts = append(node.UsedPorts, p.unmanaged[pod].Ports...)
	}
	for _, others := range p.excess {
		for _, pod := range others {
			if member := p.members[pod]; member.Node == name && member.Holds() {
				used = used.Plus(member.Requests)
			}
		}
	}
	slices.SortFunc(node.UsedPorts, func(a, b workload.HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	node.UsedPorts = slices.Compact(node.UsedPorts)
	if len(used) > 0 {
		node.Unmanaged = used
	}
	return node, true
}

// waitsMost bounds the texts of what pods wait for in a gang's message. The pods of a gang
// mostly wait for the same, and one of them is enough.
const waitsMost = 8

func (p *Cache) pods(gang workload.ID) ([]event.GangPod, []event.PodChain) {
	own, others := p.split(p.gangs[gang])
	p.setExcess(gang, others)
	var seen chains
	shown := map[string]bool{}
	pods := make([]event.GangPod, 0, len(own))
	for _, name := range own {
		member := p.members[name]
		pod := member.GangPod
		if member.UID != "" {
			pod.Chain = seen.add(p.chain(name.Namespace, member))
		}
		if pod.Waits != "" && (shown[pod.Waits] || len(shown) == waitsMost) {
			pod.Waits = ""
		} else if pod.Waits != "" {
			shown[pod.Waits] = true
		}
		pods = append(pods, pod)
	}
	slices.SortStableFunc(pods, func(a, b event.GangPod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, seen.all
}

// setExcess records the gang's pods that count only as used on their nodes.
func (p *Cache) setExcess(gang workload.ID, others []Pod) {
	for _, name := range p.excess[gang] {
		p.touchNode(p.members[name].Node)
	}
	delete(p.excess, gang)
	if len(others) > 0 {
		p.excess[gang] = others
	}
	for _, name := range others {
		p.touchNode(p.members[name].Node)
	}
}
