package output

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// Nodes is the table of nodes: of each resource what is free of what there is. Wide shows
// all resources, and what is reserved.
func Nodes(nodes []query.Node, format Format, now time.Time) Table {
	if format == Wide {
		t := Table{Header: []string{"CLUSTER", "NAME", "STATUS", "AGE", "ALLOCATABLE", "RESERVED", "FREE", "UNMANAGED", "TAINTS"}}
		for _, n := range nodes {
			t.Rows = append(t.Rows, []string{n.Cluster, n.Name, status(n), dash(age(n.Created, now)), n.Allocatable.String(), n.Reserved.String(), n.Free.String(), n.Unmanaged.String(), taints(n)})
		}
		return t
	}
	var shown []resource.Name // that any of the nodes has
	for _, n := range nodes {
		for _, name := range n.Allocatable.Names() {
			if n.Allocatable[name] != 0 && !side(name) && !slices.Contains(shown, name) {
				shown = append(shown, name)
			}
		}
	}
	slices.Sort(shown)
	t := Table{Header: []string{"CLUSTER", "NAME", "STATUS", "AGE"}}
	for _, name := range shown {
		t.Header = append(t.Header, "FREE "+string(name))
	}
	for _, n := range nodes {
		row := []string{n.Cluster, n.Name, status(n), dash(age(n.Created, now))}
		for _, name := range shown {
			row = append(row, freeOf(n, name))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// freeOf prints how much of a resource is free on a node that has it.
func freeOf(n query.Node, name resource.Name) string {
	if n.Allocatable[name] == 0 {
		return dash("")
	}
	return atLeast(name, n.Free[name]) + " of " + atLeast(name, n.Allocatable[name])
}

func status(n query.Node) string {
	var parts []string
	if !n.Ready {
		parts = append(parts, "NotReady")
	}
	if n.Cordoned {
		parts = append(parts, "Cordoned")
	}
	if n.Drained() {
		parts = append(parts, "Draining")
	}
	return cmp.Or(strings.Join(parts, ","), "Ready")
}

func taints(n query.Node) string {
	var all []string
	for _, taint := range n.Taints {
		all = append(all, setOn(taint.Key, taint.Value, taint.Effect))
	}
	return dash(strings.Join(all, ","))
}

// requests prints what a gang asks, without the pod slots, which are counted
// elsewhere.
func requests(l resource.List) string {
	without := l.Clone()
	delete(without, resource.Pods)
	return amounts(without, atMost)
}

// side reports whether a resource is rarely looked for.
func side(name resource.Name) bool {
	return name == resource.Pods || name == resource.EphemeralStorage || strings.HasPrefix(string(name), "hugepages-")
}
