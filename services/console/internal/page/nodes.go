package page

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// Nodes is the page of a list of nodes.
type Nodes struct {
	Filter    NodeFilter
	Clusters  []string
	Rows      []NodeRow
	Count, Of int
	// First and Next are links to other pages; empty where there are none.
	First, Next string
}

// NodeFilter is what a list of nodes is of: those of a cluster, whose state is one of
// States, whose name begins with a text, from the node CLUSTER/NAME on.
type NodeFilter struct{ Cluster, State, Name, From string }

// The states of nodes by which a list may be filtered.
const (
	NodeReady  = "ready"
	NodeClosed = "closed"
	NodeBroken = "broken"
)

// States lists them for a form.
func (NodeFilter) States() []string { return []string{NodeReady, NodeClosed, NodeBroken} }

// at is the address of the list from a node on.
func (f NodeFilter) at(from string) string {
	values := url.Values{}
	for name, value := range map[string]string{"cluster": f.Cluster, "state": f.State, "name": f.Name, "from": from} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/nodes?" + values.Encode()
}

func (f NodeFilter) has(n *query.Node) bool {
	state := NodeReady
	if !n.Ready {
		state = NodeBroken
	} else if n.Cordoned || n.Drained() {
		state = NodeClosed
	}
	return (f.Cluster == "" || n.Cluster == f.Cluster) && (f.State == "" || f.State == state) && (strings.HasPrefix(n.Name, f.Name))
}

// NodeRow is a node in a list.
type NodeRow struct {
	Cluster, Name, Link, Status string
	Good                        bool
	Resources                   []NodeAmount
}

// NodeAmount is a resource of a node.
type NodeAmount struct {
	Name, Free, Allocatable, Reserved, Others string
}

// MakeNodes makes the page of nodes, which are in the order of clusters and names.
func MakeNodes(nodes []query.Node, filter NodeFilter) Nodes {
	page := Nodes{Filter: filter, Of: len(nodes)}
	fromCluster, fromName, _ := strings.Cut(filter.From, "/")
	for i := range nodes {
		n := &nodes[i]
		if len(page.Clusters) == 0 || page.Clusters[len(page.Clusters)-1] != n.Cluster {
			page.Clusters = append(page.Clusters, n.Cluster)
		}
		if !filter.has(n) {
			continue
		}
		page.Count++
		if cmp.Or(cmp.Compare(n.Cluster, fromCluster), cmp.Compare(n.Name, fromName)) < 0 || page.Next != "" {
			continue
		}
		if len(page.Rows) == PageRows {
			page.Next = filter.at(n.Cluster + "/" + n.Name)
			continue
		}
		page.Rows = append(page.Rows, NodeRow{
			Cluster: n.Cluster, Name: n.Name, Link: nodeLink(n.Cluster, n.Name), Status: output.NodeStatus(*n), Good: n.Ready && !n.Cordoned && !n.Drained(),
			Resources: nodeAmounts(n, false),
		})
	}
	if filter.From != "" {
		page.First = filter.at("")
	}
	return page
}

// nodeAmounts are a node's resources: the devices, CPU and memory, or all.
func nodeAmounts(n *query.Node, all bool) []NodeAmount {
	var amounts []NodeAmount
	for _, name := range n.Allocatable.Names() {
		if all || n.Allocatable[name] != 0 && (device(name) || name == resource.CPU || name == resource.Memory) {
			amounts = append(amounts, NodeAmount{
				Name: string(name), Free: output.AtLeast(name, n.Free[name]), Allocatable: output.AtLeast(name, n.Allocatable[name]),
				Reserved: output.AtMost(name, n.Reserved[name]), Others: output.AtMost(name, n.Unmanaged[name]),
			})
		}
	}
	return amounts
}

// Node is the page of one node.
type Node struct {
	NodeRow
	Taints, Age string
	Labels      []Field
	Holders     []Holder
	// Partial: there are more live workloads than were looked at.
	Partial bool
	// WhatIf tries its drain.
	WhatIf string
}

// Holder is a workload with pods on a node.
type Holder struct {
	WorkloadRow
	PodSet     string
	PodsOnNode int
	Since      string
}

// MakeNode makes the page of a node. live are the workloads that hold places, or the first of
// them if it is partial.
func MakeNode(n query.Node, live []workload.Record, partial bool, now time.Time) Node {
	page := Node{
		NodeRow: NodeRow{Cluster: n.Cluster, Name: n.Name, Link: nodeLink(n.Cluster, n.Name), Status: output.NodeStatus(n), Good: n.Ready && !n.Cordoned, Resources: nodeAmounts(&n, true)},
		Taints:  output.Taints(n), Age: output.Age(n.Created, now), Partial: partial,
		WhatIf: "/whatif?drain=" + url.QueryEscape(n.Cluster+"/"+n.Name),
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		page.Labels = append(page.Labels, Field{key, n.Labels[key]})
	}
	for i := range live {
		r := &live[i]
		if r.Cluster != n.Cluster {
			continue
		}
		for _, p := range r.Placements {
			if p.Node == n.Name {
				page.Holders = append(page.Holders, Holder{WorkloadRow: row(r, now), PodSet: p.PodSet, PodsOnNode: p.Pods, Since: output.Age(r.Times.Admitted, now)})
			}
		}
	}
	return page
}
