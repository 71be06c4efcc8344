package placement

import (
	"strings"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// Node returns what is observed of a node, and whether there is such a node.
func (f *Fleet) Node(name string) (capacity.Node, bool) {
	n := f.nodes[name]
	if n == nil || !n.present {
		return capacity.Node{}, false
	}
	return n.Node, true
}

// Offers reports whether the node, if it were empty, ready and not cordoned, would take a
// pod of the template.
func (f *Fleet) Offers(name string, t *workload.Template) bool {
	n, present := f.Node(name)
	return present && offers(&n, t)
}

func offers(n *capacity.Node, t *workload.Template) bool {
	return offersAmounts(n, t) && n.Selects(t) && len(untolerated(n, t)) == 0
}

func offersAmounts(n *capacity.Node, t *workload.Template) bool {
	for name, amount := range t.Requests {
		if amount > n.Allocatable[name] {
			return false
		}
	}
	return true
}

// untolerated returns the lasting taints that keep pods of the template away.
func untolerated(n *capacity.Node, t *workload.Template) []capacity.Taint {
	var keep []capacity.Taint
	for _, taint := range n.Taints {
		if Lasting(taint) && !taint.Tolerated(t.Tolerations) {
			keep = append(keep, taint)
		}
	}
	return keep
}

// Lasting reports whether a taint is a property of the node. Others come and go with the
// node's condition or an operator's work on it.
func Lasting(t capacity.Taint) bool {
	return t.Effect != "PreferNoSchedule" && t.Key != capacity.DrainTaint &&
		!strings.HasPrefix(t.Key, "node.kubernetes.io/") && !strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/")
}
