package placement

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// node is a node with what is allocated on it.
type node struct {
	capacity.Node
	slot    int
	present bool
	devices bool // it has extended resources, in use or not
	// meta changes with whatever filters and topologies look at.
	meta int64

	offered vector // allocatable - unmanaged
	taken   vector // by gangs that have places here
	extra   vector // by pods of gangs outside any reservation
	free    vector // offered - taken - extra

	ports    []takenPort // of gangs that have places here
	inUse    []workload.HostPort
	inUseKey string // of inUse, canonical

	filing
	hint requeueHint
}

// filing is where a node is filed. A search sees it there, so nodes that changed are filed
// again before one (Fleet.refile); a what-if that is undone without a search moves none.
type filing struct {
	group   *group // nil while it is not filed
	changed bool   // it may belong elsewhere, and is in Fleet.changed
	meta    int64  // of the node when it was filed
	devices bool   // the same
}

// takenPort is a host port on a node, and how many pods of gangs have it.
type takenPort struct {
	workload.HostPort
	pods int
}

// group is the nodes of a class with the same free amounts: interchangeable for every
// gang, except for their names and domains.
type group struct {
	class   *class
	free    vector
	devices int64   // sum of extended resources that are free
	ports   string  // host ports in use, canonical
	nodes   []*node // by name, last first: the first name is the cheapest to take out
}

// class is a set of nodes that give every filter the same answer.
type class struct {
	key    string // the answers
	groups []*group
}

// change is what a node was before it changed.
type change struct {
	node  *node
	was   node
	known bool
}

func sameMeta(a, b *capacity.Node) bool {
	return a.Ready == b.Ready && a.Cordoned == b.Cordoned && slices.Equal(a.Taints, b.Taints) && maps.Equal(a.Labels, b.Labels)
}
