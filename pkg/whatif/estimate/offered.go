package estimate

import (
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
)

// Offered is what the nodes of a history offered, in units of resources times seconds: those of
// the snapshot, and those that came or went in the events, up to the end. A node counts while it
// is there, also when it is not ready or takes no pods.
func Offered(s Snapshot, events []Event, end time.Time) map[resource.Name]float64 {
	o := offer{since: s.Now, nodes: map[nodeKey]resource.List{}, now: map[resource.Name]int64{}, sum: map[resource.Name]float64{}}
	for i := range s.Nodes {
		o.set(keyOf(&s.Nodes[i]), s.Nodes[i].Allocatable)
	}
	for _, e := range events {
		if e.At.After(end) {
			break
		}
		switch m := e.Payload.(type) {
		case *event.NodeObserved:
			o.until(e.At)
			o.set(keyOf(&m.Node), m.Node.Allocatable)
		case *event.NodeRemoved:
			o.until(e.At)
			o.set(nodeKey{m.Cluster, m.Node}, nil)
		}
	}
	o.until(end)
	return o.sum
}

type nodeKey struct{ cluster, name string }

func keyOf(n *capacity.Node) nodeKey { return nodeKey{n.Cluster, n.Name} }

// offer sums what nodes offer over time.
type offer struct {
	since time.Time // up to which sum is
	nodes map[nodeKey]resource.List
	now   map[resource.Name]int64 // of all nodes
	sum   map[resource.Name]float64
}

// set replaces what a node offers; nil for one that goes.
func (o *offer) set(key nodeKey, offers resource.List) {
	for name, amount := range o.nodes[key] {
		o.now[name] -= amount
	}
	for name, amount := range offers {
		o.now[name] += amount
	}
	o.nodes[key] = offers
}

// until adds what all nodes offered up to a time.
func (o *offer) until(at time.Time) {
	seconds := at.Sub(o.since).Seconds()
	if seconds <= 0 {
		return
	}
	o.since = at
	for name, amount := range o.now {
		o.sum[name] += float64(amount) * seconds
	}
}
