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

// Key names one thing that is told of: a node or a gang.
type Key struct {
	Node string
	Gang workload.ID
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

func (q *queue) take(limit int) []Key {
	taken := slices.Clone(q.order[:min(limit, len(q.order))])
	q.order = q.order[len(taken):]
	for _, key := range taken {
		delete(q.has, key)
	}
	if len(q.order) == 0 {
		q.order = nil // frees what the slice has left behind
	}
	return taken
}

// Changed returns how many things are to be told of.
func (p *Picture) Changed() int { return len(p.dirty.order) }

// Take returns at most limit things that have changed, the longest waiting
// first. They count as told; who fails to tell them gives them to Retell.
func (p *Picture) Take(limit int) []Key { return p.dirty.take(limit) }

// Retell marks things as changed.
func (p *Picture) Retell(keys ...Key) {
	for _, key := range keys {
		p.dirty.add(key)
	}
}

// RetellAll marks everything that is seen as changed.
func (p *Picture) RetellAll() {
	nodes, gangs := p.Seen()
	for _, node := range nodes {
		p.dirty.add(Key{Node: node})
	}
	for _, gang := range gangs {
		p.dirty.add(Key{Gang: gang})
	}
}

// Seen lists the nodes and the workloads with pods, sorted.
func (p *Picture) Seen() ([]string, []workload.ID) {
	return slices.Sorted(maps.Keys(p.nodes)), slices.Sorted(maps.Keys(p.gangs))
}

// GangSize returns how many pods of a workload are seen.
func (p *Picture) GangSize(id workload.ID) int { return len(p.gangs[id]) }

// Sizes returns the number of nodes, of pods that are not managed, and of gangs.
func (p *Picture) Sizes() (nodes, unmanaged, gangs int) {
	return len(p.nodes), len(p.unmanaged), len(p.gangs)
}

// Tell returns what there is to say of a thing now, and whether it is gone.
func (p *Picture) Tell(key Key, version event.Version) (payload event.Payload, gone bool) {
	if key.Gang != "" {
		pods, chains := p.pods(key.Gang)
		return &event.GangObserved{Version: version, Cluster: p.cluster, Workload: key.Gang, Pods: pods, Chains: chains}, len(pods) == 0
	}
	node, ok := p.node(key.Node)
	if !ok {
		return &event.NodeRemoved{Version: version, Cluster: p.cluster, Node: key.Node}, true
	}
	return &event.NodeObserved{Version: version, Node: node}, false
}

// node sums up what is unmanaged anew instead of keeping a running sum: amounts
// saturate, and a saturated sum cannot be taken back.
func (p *Picture) node(name string) (capacity.Node, bool) {
	node, ok := p.nodes[name]
	if !ok {
		return node, false
	}
	used := resource.List{}
	for pod := range p.onNode[name] {
		used = used.Plus(p.unmanaged[pod].Requests)
		node.UsedPorts = append(node.UsedPorts, p.unmanaged[pod].Ports...)
	}
	for _, others := range p.apart {
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

func (p *Picture) pods(gang workload.ID) ([]event.GangPod, []event.PodChain) {
	told, others := p.told(p.gangs[gang])
	p.setApart(gang, others)
	var seen chains
	pods := make([]event.GangPod, 0, len(told))
	for _, name := range told {
		member := p.members[name]
		pod := member.GangPod
		if member.UID != "" {
			pod.Chain = seen.add(p.chain(name.Namespace, member))
		}
		pods = append(pods, pod)
	}
	slices.SortStableFunc(pods, func(a, b event.GangPod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, seen.all
}

// setApart has the nodes of pods counted that are not told of as a gang's.
func (p *Picture) setApart(gang workload.ID, others []Pod) {
	for _, name := range p.apart[gang] {
		p.touchNode(p.members[name].Node)
	}
	delete(p.apart, gang)
	if len(others) > 0 {
		p.apart[gang] = others
	}
	for _, name := range others {
		p.touchNode(p.members[name].Node)
	}
}
