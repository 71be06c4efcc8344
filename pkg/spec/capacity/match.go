package capacity

import (
	"slices"
	"strconv"

	"muster.dev/muster/pkg/spec/workload"
)

// Refusal is why a node takes no pod of a template, whatever is free on it.
type Refusal string

// The refusals. The empty Refusal means that only resources decide.
const (
	RefusedNotReady Refusal = "not ready"
	RefusedCordoned Refusal = "cordoned"
	RefusedSelector Refusal = "selector"
	RefusedAffinity Refusal = "affinity"
	RefusedTaint    Refusal = "taint"
)

// unschedulableTaint is what Kubernetes puts on cordoned nodes; who tolerates
// it may use them.
const unschedulableTaint = "node.kubernetes.io/unschedulable"

// Refuses returns why the node takes no pod of the template, or "". The rules
// are kube-scheduler's (plugins NodeUnschedulable, NodeAffinity,
// TaintToleration).
func (n *Node) Refuses(t *workload.Template) Refusal {
	switch {
	case !n.Ready:
		return RefusedNotReady
	case n.Cordoned && !tolerated(Taint{Key: unschedulableTaint, Effect: "NoSchedule"}, t.Tolerations):
		return RefusedCordoned
	case n.Drained(): // not even who tolerates every taint, it would not stay
		return RefusedTaint
	case !selected(t.NodeSelector, n.Labels):
		return RefusedSelector
	case !n.inAffinity(t.Affinity):
		return RefusedAffinity
	}
	if _, is := n.Untolerated(t); is {
		return RefusedTaint
	}
	return ""
}

// Untolerated returns the first taint that keeps pods of the template from the node; of a
// drained node that of the drain.
func (n *Node) Untolerated(t *workload.Template) (taint Taint, is bool) {
	for _, taint := range n.Taints {
		if taint.Key == DrainTaint {
			return taint, true
		}
	}
	for _, taint := range n.Taints {
		if taint.Effect != "PreferNoSchedule" && taint.Key != unschedulableTaint && !tolerated(taint, t.Tolerations) {
			return taint, true
		}
	}
	return Taint{}, false
}

// Selects reports whether the template's selector and required affinity match
// the node, whether or not it takes pods now.
func (n *Node) Selects(t *workload.Template) bool {
	return selected(t.NodeSelector, n.Labels) && n.inAffinity(t.Affinity)
}

func selected(selector, labels map[string]string) bool {
	for key, value := range selector {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

func (n *Node) inAffinity(terms []workload.NodeTerm) bool {
	if len(terms) == 0 {
		return true
	}
	return slices.ContainsFunc(terms, func(term workload.NodeTerm) bool {
		if len(term.Labels) == 0 && len(term.Fields) == 0 {
			return false // an empty term matches nothing
		}
		for _, requirement := range term.Labels {
			value, ok := n.Labels[requirement.Key]
			if !meets(requirement, value, ok) {
				return false
			}
		}
		for _, requirement := range term.Fields {
			if requirement.Key != "metadata.name" || !meets(requirement, n.Name, true) {
				return false
			}
		}
		return true
	})
}

// meets decides a requirement as k8s.io/apimachinery/pkg/labels does: NotIn is
// met by a missing key, Gt and Lt compare integers.
func meets(r workload.Requirement, value string, present bool) bool {
	switch r.Operator {
	case "In":
		return present && slices.Contains(r.Values, value)
	case "NotIn":
		return !present || !slices.Contains(r.Values, value)
	case "Exists":
		return present
	case "DoesNotExist":
		return !present
	case "Gt", "Lt":
		if !present || len(r.Values) != 1 {
			return false
		}
		got, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return false
		}
		bound, err := strconv.ParseInt(r.Values[0], 10, 64)
		if err != nil {
			return false
		}
		return (r.Operator == "Gt" && got > bound) || (r.Operator == "Lt" && got < bound)
	}
	return false
}

func tolerated(taint Taint, tolerations []workload.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(t workload.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect {
			return false
		}
		if t.Key == "" {
			return t.Operator == "Exists"
		}
		if t.Key != taint.Key {
			return false
		}
		return t.Operator == "Exists" || t.Value == taint.Value
	})
}

// Tolerated reports whether one of the tolerations lets a pod onto a node with
// the taint.
func (t Taint) Tolerated(tolerations []workload.Toleration) bool { return tolerated(t, tolerations) }
