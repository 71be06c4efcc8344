package page

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/internal/client/output"
)

// Nodes is the page of a list of nodes.
type Nodes struct {
	Rows      []NodeRow
	Count, Of int
	// First and Next are links to other pages; empty where there are none.
	First, Next string
}

// NodeFilter is what a list of nodes is of: those of a cluster, in one of States, whose name
// begins with a text, from the node CLUSTER/NAME on.
type NodeFilter struct{ Cluster, State, Name, From string }

// States lists them for a form.
func (NodeFilter) States() []string { return query.NodeStates() }

// Request asks for the page.
func (f NodeFilter) Request() query.NodesRequest {
	r := query.NodesRequest{Cluster: f.Cluster, State: f.State, Prefix: f.Name, Limit: PageRows, Holders: true}
	r.From.Cluster, r.From.Name, _ = strings.Cut(f.From, "/")
	return r
}

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

// NodeRow is a node in a list.
type NodeRow struct {
	Cluster, Name, Link, Status string
	Good                        bool
	// Until is when the last holder gives back its places; empty when nothing holds any.
	Until     string
	Holds     int // pod sets with places on it
	Resources []NodeAmount
}

// NodeAmount is a resource of a node.
type NodeAmount struct {
	Name, Free, Allocatable, Reserved, Others string
}

func nodeRow(n *query.Node, all bool, now time.Time) NodeRow {
	row := NodeRow{
		Cluster: n.Cluster, Name: n.Name, Link: NodeLink(n.Cluster, n.Name), Status: output.NodeStatus(*n), Good: n.Ready && !n.Cordoned && !n.Drained(),
		Holds: n.HoldersInAll, Resources: nodeAmounts(n, all),
	}
	if n.Until != nil {
		row.Until = output.Ends(*n.Until, now)
	}
	return row
}

// MakeNodes makes the page of nodes, which the answer has for the filter's request.
func MakeNodes(answer query.NodesAnswer, filter NodeFilter, now time.Time) Nodes {
	page := Nodes{Count: answer.Count, Of: answer.InAll}
	for i := range answer.Nodes {
		page.Rows = append(page.Rows, nodeRow(&answer.Nodes[i], false, now))
	}
	if answer.Next != (query.NodeName{}) {
		page.Next = filter.at(answer.Next.Cluster + "/" + answer.Next.Name)
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
	HoldersMore int
	// Reserved says by which reservations it is kept, now or later.
	Reserved []string
	Actions  []Action
	// WhatIf tries its drain.
	WhatIf string
}

// Holder is a pod set of a workload with places on a node.
type Holder struct {
	Link, Title, Queue, Phase, PhaseClass, PodSet, Since, Until string
	PodsOnNode                                                  int
}

// MakeNode makes the page of a node, with the reservations that cover it.
func MakeNode(n query.Node, reserved []quota.Reservation, actions []Action, now time.Time) Node {
	page := Node{
		NodeRow: nodeRow(&n, true, now), Taints: output.Taints(n), Age: output.Age(n.Created, now), Actions: actions,
		HoldersMore: n.HoldersInAll - len(n.Holders), WhatIf: "/whatif?drain=" + url.QueryEscape(n.Cluster+"/"+n.Name),
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		page.Labels = append(page.Labels, Field{key, n.Labels[key]})
	}
	for _, h := range n.Holders {
		page.Holders = append(page.Holders, Holder{
			Link: WorkloadLink(h.ID), Title: h.Title(), Queue: h.Queue, Phase: string(h.Phase), PhaseClass: string(h.Phase), PodSet: h.PodSet,
			PodsOnNode: h.Pods, Since: output.Age(h.Since, now), Until: output.Ends(h.Until, now),
		})
	}
	for _, r := range reserved {
		text := r.Message([]string{n.Name})
		if r.Evict {
			text += "; what still runs then is evicted"
		}
		page.Reserved = append(page.Reserved, text)
	}
	page.Reserved = bounded(page.Reserved)
	return page
}
