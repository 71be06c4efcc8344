package admission

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// barredMost bounds the barred nodes that are tried.
const barredMost = 8

// openNode suggests to open nodes that operators have barred: cordoned or drained ones.
func (e *explainer) openNode() {
	tried := 0
	for _, cluster := range e.s.clustersFor(e.w) {
		for _, v := range e.s.fleets[cluster].Views() {
			if !v.Node.Ready || !v.Node.Cordoned && !v.Node.Drained() {
				continue
			}
			if tried++; tried > barredMost {
				e.found.Partial = true
				return
			}
			if e.works(func(s *State) { s.SetNode(Opened(v.Node)) }) {
				e.suggest(workload.Change{Kind: workload.ChangeOpenNode, Cluster: cluster, Node: v.Node.Name}, "%s node %s in cluster %s",
					opening(&v.Node), v.Node.Name, cluster)
			}
		}
	}
}

// opening returns what opens a node.
func opening(n *capacity.Node) string {
	var steps []string
	if n.Cordoned {
		steps = append(steps, "uncordoning")
	}
	if n.Drained() {
		steps = append(steps, "removing the taint "+capacity.DrainTaint+" from")
	}
	return strings.Join(steps, " and ")
}

// Opened returns the node as it is when it is neither cordoned nor drained any more.
func Opened(n capacity.Node) capacity.Node {
	n.Cordoned = false
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t capacity.Taint) bool { return t.Key == capacity.DrainTaint })
	return n
}
