package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// States of nodes by which they are selected.
const (
	NodeReady  = "ready"
	NodeClosed = "closed" // ready, and cordoned or drained
	NodeBroken = "broken" // not ready
)

// NodeStates lists them.
func NodeStates() []string { return []string{NodeReady, NodeClosed, NodeBroken} }

// MaxHolders is how many holders of a node an answer names.
const MaxHolders = 100

// NodesRequest selects nodes; an empty one selects all.
type NodesRequest struct {
	Cluster string `json:"cluster,omitempty"`
	// Name is that of a node, Prefix the beginning of names, and State one of NodeStates.
	Name   string `json:"name,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	State  string `json:"state,omitempty"`
	// From is the node with which the answer begins, in the order of clusters and names: the Next
	// of the page before.
	From NodeName `json:"from,omitzero"`
	// Limit is at most MaxPage; zero is no limit.
	Limit int `json:"limit,omitempty"`
	// Holders asks who holds the nodes, and until when.
	Holders bool `json:"holders,omitempty"`
}

// Check reports what is wrong with the request.
func (r NodesRequest) Check() error {
	switch {
	case r.State != "" && !slices.Contains(NodeStates(), r.State):
		return fmt.Errorf("state %.40q: want one of %s", r.State, strings.Join(NodeStates(), ", "))
	case r.Limit < 0 || r.Limit > MaxPage:
		return fmt.Errorf("limit %d: want a whole number from 1 to %d", r.Limit, MaxPage)
	}
	return nil
}

// NodesAnswer lists nodes by cluster and name.
type NodesAnswer struct {
	Nodes []Node `json:"nodes"`
	// Next is the From of the following page; empty after the last.
	Next NodeName `json:"next,omitzero"`
	// Of a request with a limit Count is how many nodes it selects, and InAll how many there are.
	Count int `json:"count,omitempty"`
	InAll int `json:"inAll,omitempty"`
	// Selected: the request was considered.
	Selected bool `json:"selected,omitempty"`
}

// Node is a node and what is reserved on it.
type Node struct {
	capacity.Node
	Reserved resource.List `json:"reserved"`
	Free     resource.List `json:"free"`
	// Holders are the first MaxHolders workloads and pod sets with places on the node, and
	// HoldersInAll how many there are. Until is when the last of them gives back its places; nil
	// when none holds any. All three are there when the request asks for holders.
	Holders      []Holder      `json:"holders,omitempty"`
	HoldersInAll int           `json:"holdersInAll,omitempty"`
	Until        *workload.End `json:"until,omitempty"`
}

// Holder is a pod set of a workload with places on a node.
type Holder struct {
	ID        workload.ID    `json:"id"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Queue     string         `json:"queue"`
	Phase     workload.Phase `json:"phase"`
	PodSet    string         `json:"podSet"`
	Pods      int            `json:"pods"`
	Since     time.Time      `json:"since,omitzero"`
	Until     workload.End   `json:"until"`
}

// Title is the name of the workload with its namespace.
func (h Holder) Title() string {
	w := workload.Workload{Namespace: h.Namespace, Name: h.Name}
	return w.Title()
}

// SetUntil sets when the last holder gives back its places, and leaves out holders beyond
// MaxHolders.
func (n *Node) SetUntil() {
	n.HoldersInAll = len(n.Holders)
	for i := range n.Holders {
		if end := n.Holders[i].Until; n.Until == nil || n.Until.Before(end) {
			n.Until = &end
		}
	}
	n.Holders = n.Holders[:min(len(n.Holders), MaxHolders)]
}

// ErrNodesNotSelected is wrapped when the answer has other nodes than were asked for.
var ErrNodesNotSelected = errors.New("this queue-manager is older and does not select nodes; replace it")

// Nodes returns all nodes.
func (c *Client) Nodes(ctx context.Context) (NodesAnswer, error) {
	return ask[NodesAnswer](ctx, c.transport, NodesSubject, NodesRequest{})
}

// SelectNodes returns the nodes of a request, or a page of them.
func (c *Client) SelectNodes(ctx context.Context, request NodesRequest) (NodesAnswer, error) {
	answer, err := ask[NodesAnswer](ctx, c.transport, NodesSubject, request)
	if err == nil && !answer.Selected && request != (NodesRequest{}) {
		return NodesAnswer{}, fmt.Errorf("list nodes: %w", ErrNodesNotSelected)
	}
	return answer, err
}
