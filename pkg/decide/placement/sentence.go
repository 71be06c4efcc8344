package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// sentence explains a shortage in the words of kube-scheduler, with the amounts beside
// them.
func sentence(s *workload.Shortage) string {
	text := fmt.Sprintf("%d of %d pods of pod set %q do not fit", s.Unplaced, s.Pods, s.PodSet)
	if s.Constraint != "" && s.Eligible > 0 {
		text += fmt.Sprintf(" when they must be %s", s.Constraint)
	}
	switch {
	case s.Eligible == 0:
		return fmt.Sprintf("%s: 0/%d nodes are available: %s", text, s.Nodes, excluded(s.Excluded))
	case lacksSomething(s):
		text += fmt.Sprintf(": 0/%d nodes are available: %s. ", s.Nodes, strings.Join(slices.Concat(insufficient(s), causes(s.Excluded)), ", "))
	case len(s.Excluded) > 0:
		text += fmt.Sprintf(": %d/%d nodes are not eligible: %s. ", s.Nodes-s.Eligible, s.Nodes, excluded(s.Excluded))
	default:
		text += ". "
	}
	return text + amounts(s)
}

// amounts compares what a pod requests with what is free on the eligible nodes.
func amounts(s *workload.Shortage) string {
	if len(s.Lacking) > 0 {
		var requests []string
		for _, l := range s.Lacking {
			requests = append(requests, fmt.Sprintf("%s %s", l.Resource, resource.Format(l.Resource, l.Asked)))
		}
		return fmt.Sprintf("Each pod requests %s; none of the %d eligible nodes has all of them free", strings.Join(requests, " and "), s.Eligible)
	}
	text := fmt.Sprintf("Each pod requests %s %s; free: %s on the best node, %s in sum over %d eligible nodes",
		s.Resource, resource.Format(s.Resource, s.Asked),
		resource.Format(s.Resource, s.Largest), resource.Format(s.Resource, s.Sum), s.Eligible)
	if s.Sum >= s.Asked && s.Largest < s.Asked {
		text += ", but not on one node"
	}
	return text
}

// insufficient counts the eligible nodes by the resource that they lack.
func insufficient(s *workload.Shortage) []string {
	if len(s.Lacking) == 0 {
		return []string{fmt.Sprintf("%d Insufficient %s", s.Eligible, s.Resource)}
	}
	var counts []string
	for _, l := range s.Lacking {
		counts = append(counts, fmt.Sprintf("%d Insufficient %s", l.Nodes, l.Resource))
	}
	return counts
}

// portsInUse is the cause of nodes where a host port of the pods is in use.
const portsInUse = "host port"

// causes counts the nodes that are not eligible by cause.
func causes(counts map[string]int) []string {
	var texts []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		kind, taint, _ := strings.Cut(cause, " {")
		text := fmt.Sprintf("%d %s", counts[cause], cmp.Or(phrases[kind], cause))
		if taint != "" {
			text += " {" + taint
		}
		texts = append(texts, text)
	}
	return texts
}

// Bounds of the taints that are named: how many different ones, and the bytes of each part.
const (
	taintsMost = 4
	taintBytes = 100
)

// nameTaints adds the nodes with taints to the counts of causes. The most frequent taints are
// named, as kube-scheduler does, whatever the order of the nodes.
func nameTaints(counts map[string]int, taints map[capacity.Taint]int) {
	const cause = string(capacity.RefusedTaint)
	named := map[string]int{}
	for taint, nodes := range taints {
		named[fmt.Sprintf("%s {%.*s: %.*s}", cause, taintBytes, taint.Key, taintBytes, taint.Value)] += nodes
	}
	keys := slices.SortedFunc(maps.Keys(named), func(a, b string) int {
		return cmp.Or(cmp.Compare(named[b], named[a]), cmp.Compare(a, b))
	})
	for i, key := range keys {
		if i < taintsMost {
			counts[key] += named[key]
		} else {
			counts[cause] += named[key]
		}
	}
}

func excluded(counts map[string]int) string { return strings.Join(causes(counts), ", ") }

// phrases are kube-scheduler's for the causes why nodes are not eligible.
var phrases = map[string]string{
	string(capacity.RefusedNotReady): "node(s) were not ready",
	string(capacity.RefusedCordoned): "node(s) were unschedulable",
	string(capacity.RefusedSelector): "node(s) didn't match Pod's node selector",
	string(capacity.RefusedAffinity): "node(s) didn't match Pod's node affinity",
	string(capacity.RefusedTaint):    "node(s) had untolerated taint",
	portsInUse:                       "node(s) didn't have free ports for the requested pod ports",
}

// lacksSomething reports whether every eligible node lacks some resource that a pod
// requests.
func lacksSomething(short *workload.Shortage) bool {
	return short.Largest < short.Asked || len(short.Lacking) > 0
}
