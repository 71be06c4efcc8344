package quota

import "muster.dev/muster/pkg/spec/resource"

// past is the share of past use of a node, all queues below it together.
func (t *Tree) past(n *node) Share {
	if t.halfLife() == 0 || n.parent == nil {
		return 0
	}
	used := map[resource.Name]float64{}
	n.addPast(used)
	var largest Share
	for name, amount := range used {
		if lendable := t.lendable(n.parent, name); lendable > 0 {
			largest = max(largest, pastRatio(amount, lendable, n.weight))
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

// pastRatio is ratio of a past amount. Each operation is rounded by IEEE 754, so it is
// the same on every machine.
func pastRatio(amount float64, lendable, weightMilli int64) Share {
	if weightMilli == 0 {
		return MaxShare
	}
	share := float64(amount/float64(lendable)) * 1e6
	share = float64(share/float64(weightMilli)) * defaultWeight
	if share >= float64(MaxShare-1) {
		return MaxShare - 1
	}
	return Share(share)
}
