package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/whatif/estimate"
)

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

// kubeletPods is how many pods a kubelet takes by default.
const kubeletPods = 110
