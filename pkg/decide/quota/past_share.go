package quota

import "muster.dev/muster/pkg/spec/resource"

// past is the share of past use of a node, all queues below it together.
func (t *Tree) past(n *node) (largest fraction) {
	if t.halfLife() == 0 || n.parent == nil {
		return fraction{}
	}
	used := map[resource.Name]float64{}
	n.addPast(used)
	for name, amount := range used {
		if lendable := t.lendable(n.parent, name); lendable > 0 && amount > 0 {
			if p := pastPartOf(amount, lendable, n.weight); p.compare(largest) > 0 {
				largest = p
			}
		}
	}
	return largest
}

// addPast adds the past use of all queues below a node, each in the same order.
func (n *node) addPast(used map[resource.Name]float64) {
	for name, amount := range n.present.Used {
		used[name] += amount
	}
	for _, child := range n.children {
		child.addPast(used)
	}
}
