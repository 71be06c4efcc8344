// Package capacity describes what nodes offer and which pods they admit.
//
// It is not for watching nodes (service capacity-watcher) nor for choosing one
// (package placement). The package is pure: standard library only, no clock, no
// I/O.
package capacity

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Taint of a node, as in Kubernetes. Effects NoSchedule and NoExecute keep pods
// without a matching toleration away; PreferNoSchedule does not.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// DrainTaint is the key of a taint by which an operator has Muster empty a node:
// gangs there are warned, then moved or evicted.
const DrainTaint = "muster.dev/drain"

// HostnameLabel is the node label by which a pod is pinned to a node.
const HostnameLabel = "kubernetes.io/hostname"

// Drained reports whether the node shall be emptied.
func (n *Node) Drained() bool {
	return slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Key == DrainTaint })
}

// Node is one node of one cluster as last observed.
type Node struct {
	Cluster  string            `json:"cluster"`
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	Taints   []Taint           `json:"taints,omitempty"`
	Ready    bool              `json:"ready"`
	Cordoned bool              `json:"cordoned,omitempty"`
	// Created is when the node's object was created; zero where the watcher does not report it.
	Created     time.Time     `json:"created,omitzero"`
	Allocatable resource.List `json:"allocatable"`
	// Unmanaged is what pods that Muster does not manage use, one pod slot each.
	Unmanaged resource.List `json:"unmanaged,omitempty"`
	// UsedPorts are the host ports of pods that Muster does not manage.
	UsedPorts []workload.HostPort `json:"usedPorts,omitempty"`
}
