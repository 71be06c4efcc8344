package ray

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/spec/fault"
)

// checkConstraints refuses selectors, affinities and tolerations that the API
// server would refuse.
func checkConstraints(path string, spec *corev1.PodSpec) error {
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if err := checkLabel(path+".nodeSelector", key, spec.NodeSelector[key]); err != nil {
			return err
		}
	}
	for i, t := range spec.Tolerations {
		if err := checkToleration(fmt.Sprintf("%s.tolerations[%d]", path, i), t); err != nil {
			return err
		}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil ||
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	where := path + ".affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) == 0 {
		return refuse(where, "is empty", "want at least one term")
	}
	for i, term := range terms {
		for j, r := range term.MatchExpressions {
			if err := checkRequirement(fmt.Sprintf("%s[%d].matchExpressions[%d]", where, i, j), r); err != nil {
				return err
			}
		}
		for j, r := range term.MatchFields {
			field := fmt.Sprintf("%s[%d].matchFields[%d]", where, i, j)
			if r.Key != "metadata.name" || len(r.Values) != 1 || r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
				return refuse(field, "is "+fault.Quote(fmt.Sprintf("%s %s %v", r.Key, r.Operator, r.Values)),
					"want metadata.name In or NotIn one name")
			}
		}
	}
	return nil
}

func checkLabel(where, key, value string) error {
	if faults := validation.IsQualifiedName(key); len(faults) > 0 {
		return refuse(where, fault.Quote(key)+" cannot be the key of a label", faults[0])
	}
	if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
		return refuse(where+"."+key, fault.Quote(value)+" cannot be the value of a label", faults[0])
	}
	return nil
}

func checkToleration(where string, t corev1.Toleration) error {
	switch t.Operator {
	case corev1.TolerationOpExists:
		if t.Value != "" {
			return refuse(where+".value", "is "+fault.Quote(t.Value)+" with operator Exists", "remove it, or use operator Equal")
		}
	case corev1.TolerationOpEqual, "":
		if t.Key == "" {
			return refuse(where+".key", "is empty", "want a key, or operator Exists for all taints")
		}
	default:
		return refuse(where+".operator", "is "+fault.Quote(string(t.Operator)), "want Exists or Equal")
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return refuse(where+".effect", "is "+fault.Quote(string(t.Effect)), "want NoSchedule, PreferNoSchedule, NoExecute or nothing")
	}
	if t.Key == "" {
		return nil
	}
	return checkLabel(where, t.Key, t.Value)
}

func checkRequirement(where string, r corev1.NodeSelectorRequirement) error {
	if err := checkLabel(where+".key", r.Key, ""); err != nil {
		return err
	}
	count, want := len(r.Values), ""
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if count == 0 {
			want = "want at least one value"
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if count > 0 {
			want = "want no values"
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if count != 1 {
			want = "want one whole number"
		} else if _, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil {
			want = "want one whole number"
		}
	default:
		return refuse(where+".operator", "is "+fault.Quote(string(r.Operator)), "want In, NotIn, Exists, DoesNotExist, Gt or Lt")
	}
	if want != "" {
		return refuse(where+".values", fmt.Sprintf("has %d values with operator %s", count, r.Operator), want)
	}
	return nil
}
