package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
)

// drain takes nodes away, and evicts the gangs that have pods there.
func drain(s *estimate.Snapshot, names []query.NodeName, sets []query.NodeSet) error {
	drained := map[query.NodeName]bool{}
	for _, name := range names {
		i := nodeIndex(s.Nodes, name)
		if i < 0 {
			return noNode(name)
		}
		s.Nodes[i].Cordoned, drained[name] = true, true
	}
	for _, set := range sets {
		found := false
		for i := range s.Nodes {
			if n := &s.Nodes[i]; isIn(n, set) {
				found, n.Cordoned, drained[query.NodeName{Cluster: n.Cluster, Name: n.Name}] = true, true, true
			}
		}
		if !found {
			return fmt.Errorf("no node is of cluster %q with label %q of value %q: see `muster get nodes -o json`", set.Cluster, set.Label, set.Value)
		}
	}
	if len(drained) > 0 {
		evictFrom(s, drained)
	}
	return nil
}

// isIn reports whether a node is one of a set.
func isIn(n *capacity.Node, set query.NodeSet) bool {
	value, labelled := n.Labels[set.Label]
	return (set.Cluster == "" || n.Cluster == set.Cluster) && (set.Label == "" || labelled && value == set.Value)
}

// evictFrom evicts the gangs that have pods on some nodes.
func evictFrom(s *estimate.Snapshot, drained map[query.NodeName]bool) {
	for k := range s.Running {
		w := &s.Running[k]
		i := slices.IndexFunc(w.Placements, func(p workload.Placement) bool { return drained[query.NodeName{Cluster: w.Cluster, Name: p.Node}] })
		if i >= 0 && !w.Phase.Final() && w.Phase != workload.Cancelling {
			w.Phase, w.EvictAt = workload.Evicting, s.Now
			w.Reason = &workload.Reason{Kind: workload.ReasonDrained, Message: "node " + w.Placements[i].Node + " is drained"}
		}
	}
}

// addNodes adds empty nodes that are like a present one, or of a shape.
func addNodes(s *estimate.Snapshot, group int, added query.NodesLike) error {
	var like capacity.Node
	if added.Shape != nil {
		var err error
		if like, err = shaped(s.Nodes, *added.Shape); err != nil {
			return err
		}
	} else {
		i := nodeIndex(s.Nodes, added.Like)
		if i < 0 {
			return noNode(added.Like)
		}
		like = s.Nodes[i]
	}
	for n := range added.Count {
		node := like
		node.Name = fmt.Sprintf("added-%d-%d", group, n)
		node.Ready, node.Cordoned, node.Unmanaged = true, false, resource.List{}
		s.Nodes = append(s.Nodes, node)
	}
	return nil
}

// shaped is a node of a shape. Its cluster is a known one, because Muster admits nothing in
// others.
func shaped(nodes []capacity.Node, shape query.NodeShape) (capacity.Node, error) {
	clusters := map[string]bool{}
	for i := range nodes {
		clusters[nodes[i].Cluster] = true
	}
	cluster := shape.Cluster
	if cluster == "" && len(clusters) == 1 {
		cluster = nodes[0].Cluster
	}
	if !clusters[cluster] {
		return capacity.Node{}, fmt.Errorf("cluster %q of the added nodes: want one of %s", shape.Cluster, strings.Join(slices.Sorted(maps.Keys(clusters)), ", "))
	}
	node := capacity.Node{Cluster: cluster, Labels: shape.Labels, Allocatable: shape.Allocatable.Clone()}
	if _, given := node.Allocatable[resource.Pods]; !given {
		node.Allocatable[resource.Pods] = kubeletPods
	}
	return node, nil
}

// kubeletPods is how many pods a kubelet takes unless it is told otherwise.
const kubeletPods = 110

func nodeIndex(nodes []capacity.Node, name query.NodeName) int {
	return slices.IndexFunc(nodes, func(n capacity.Node) bool { return n.Cluster == name.Cluster && n.Name == name.Name })
}

func noNode(name query.NodeName) error {
	return fmt.Errorf("there is no node %q in cluster %q: see `muster get nodes`", name.Name, name.Cluster)
}
