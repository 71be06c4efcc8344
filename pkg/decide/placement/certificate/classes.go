package certificate

import (
	"fmt"
	"math"
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// verification bounds the search of one verification, in steps of less than a
// microsecond.
const verification = 1_000_000

// Bounds of what a search is made on: it goes through nodes one by one.
const (
	mostSearchedNodes = 2048
	mostSearchedCells = 1 << 16 // nodes times pod sets
)

func (c *Class) node() capacity.Node {
	return capacity.Node{Name: c.Name, Labels: c.Labels, Taints: c.Taints, Ready: !c.Closed, Cordoned: c.Cordoned}
}

// room returns how many pods of the set each node of the class takes, at most the count
// of the set, and rules on domains aside.
func (c *Class) room(set *workload.PodSet) int {
	node := c.node()
	if node.Refuses(&set.Template) != "" {
		return 0
	}
	room := int64(set.Count)
	ports := set.Template.HostPorts
	for i, port := range ports {
		room = min(room, 1)
		if slices.ContainsFunc(c.PortsInUse, port.Conflicts) || slices.ContainsFunc(ports[:i], port.Conflicts) {
			return 0
		}
	}
	for name, amount := range set.Template.Requests {
		if amount > 0 {
			room = min(room, c.Free[name]/amount)
		}
	}
	return int(max(0, room))
}

// roomOn adds up the room of classes, at most the count of the set.
func roomOn(classes []Class, set *workload.PodSet) int {
	room := int64(0)
	for i := range classes {
		room = min(int64(set.Count), room+int64(classes[i].room(set))*int64(classes[i].Nodes))
	}
	return int(room)
}

// countedOn returns how many pods of the only set the nodes take, each node on its own.
func countedOn(classes []Class, w *workload.Workload) (room int, err error) {
	if len(w.PodSets) != 1 {
		return 0, fmt.Errorf("a count is of one pod set, not of %d", len(w.PodSets))
	}
	set := &w.PodSets[0]
	if room = roomOn(classes, set); room >= set.Count {
		return room, fmt.Errorf("there is room for all %d pods of %.80q, as far as a count shows", set.Count, set.Name)
	}
	return room, nil
}

// summedOn returns how much of a resource the pod sets ask for, and how much of it is
// free on nodes that take a pod of any of them.
func summedOn(classes []Class, w *workload.Workload, name resource.Name) (asked, free int64, err error) {
	for i := range w.PodSets {
		asked = add(asked, multiply(w.PodSets[i].Template.Requests[name], w.PodSets[i].Count))
	}
	for i := range classes {
		c := &classes[i]
		if slices.ContainsFunc(w.PodSets, func(set workload.PodSet) bool { return c.room(&set) > 0 }) {
			free = add(free, multiply(c.Free[name], c.Nodes))
		}
	}
	if asked <= free {
		return asked, free, fmt.Errorf("%d of %.80s are asked for, and %d are free", asked, name, free)
	}
	return asked, free, nil
}

// domains splits the classes by the domain of a level. Nodes without its label are in none.
func domains(classes []Class, key string) map[string][]Class {
	split := map[string][]Class{}
	for _, c := range classes {
		if value, labelled := workload.DomainOf(c.Labels, key); labelled {
			split[value] = append(split[value], c)
		}
	}
	return split
}

// dividedOn returns an error unless the pod sets must be in one domain and no domain has
// room for them.
func dividedOn(classes []Class, w *workload.Workload, key string) error {
	if !bound(w, key) {
		return fmt.Errorf("nothing demands that the pod sets are in one domain of %.80q", key)
	}
	for value, there := range domains(classes, key) {
		if !refuted(there, w) {
			return fmt.Errorf("domain %.80q of %.80q may have room for all", value, key)
		}
	}
	return nil
}

// refuted reports whether a count of one of the pod sets, or the sum of a resource over
// all, proves that they do not fit.
func refuted(classes []Class, w *workload.Workload) bool {
	names := resource.List{}
	for i := range w.PodSets {
		if roomOn(classes, &w.PodSets[i]) < w.PodSets[i].Count {
			return true
		}
		names = names.Max(w.PodSets[i].Template.Requests)
	}
	return slices.ContainsFunc(names.Names(), func(name resource.Name) bool {
		_, _, err := summedOn(classes, w, name)
		return err == nil
	})
}

// bound reports whether the workload's pods must be in one domain of a label: one pod
// set by its topology, or all by a term of the first that names the others.
func bound(w *workload.Workload, key string) bool {
	first := &w.PodSets[0]
	if t := first.Topology; len(w.PodSets) == 1 && t != nil && t.Mode == workload.TopologyRequired && t.Level == key {
		return true
	}
	return slices.ContainsFunc(first.Template.Together, func(t workload.Together) bool {
		return t.TopologyKey == key && !slices.ContainsFunc(w.PodSets[1:], func(set workload.PodSet) bool { return !slices.Contains(t.PodSets, set.Name) })
	})
}

// slicedOn returns for how many slices of the only set the domains have room.
func slicedOn(classes []Class, w *workload.Workload, key string) (room int, err error) {
	set := &w.PodSets[0]
	t := set.Topology
	if len(w.PodSets) != 1 || t == nil || t.SliceSize < 2 || t.SliceLevel != key {
		return 0, fmt.Errorf("nothing demands slices in domains of %.80q of one pod set", key)
	}
	for _, there := range domains(classes, key) {
		room += roomOn(there, set) / t.SliceSize
	}
	if room*t.SliceSize >= set.Count {
		return room, fmt.Errorf("there is room for all %d pods of %.80q in slices of %d", set.Count, set.Name, t.SliceSize)
	}
	return room, nil
}

// searchedOn goes through all ways to place the pod sets on single nodes.
func searchedOn(classes []Class, w *workload.Workload, work *int) error {
	nodes := 0
	for i := range classes {
		nodes += classes[i].Nodes
	}
	if nodes > mostSearchedNodes || nodes*len(w.PodSets) > mostSearchedCells {
		return ErrTooLarge
	}
	views := make([]placement.View, 0, nodes)
	for i := range classes {
		for range classes[i].Nodes {
			views = append(views, placement.View{Node: classes[i].node(), Free: classes[i].Free, Ports: classes[i].PortsInUse})
		}
	}
	s := newWalk(views, w, *work)
	s.priced = true
	err := s.proves()
	*work = s.left
	return err
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func multiply(amount int64, n int) int64 {
	if n > 0 && amount > math.MaxInt64/int64(n) {
		return math.MaxInt64
	}
	return amount * int64(n)
}
