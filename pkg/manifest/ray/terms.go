package ray

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// AddMetadata adds the labels and annotations of an AdmissionCheck to the metadata of a pod.
// What the pod has stays.
func AddMetadata(metadata map[string]any, terms workload.PodSetTerms) error {
	for field, values := range map[string]map[string]string{"labels": terms.Labels, "annotations": terms.Annotations} {
		if len(values) == 0 {
			continue
		}
		present, err := child(metadata, field)
		if err != nil {
			return err
		}
		for key, value := range values {
			if _, there := present[key]; !there {
				present[key] = value
			}
		}
	}
	return nil
}

// AddTerms adds what flavors say to the spec of a pod; selectors that the pod has
// stay, for they do not contradict.
func AddTerms(spec map[string]any, terms workload.PodSetTerms) error {
	if len(terms.NodeSelector) > 0 {
		selector, err := child(spec, "nodeSelector")
		if err != nil {
			return err
		}
		for key, value := range terms.NodeSelector {
			selector[key] = value
		}
	}
	if len(terms.Tolerations) == 0 {
		return nil
	}
	tolerations, _ := spec["tolerations"].([]any)
	tolerations = slices.Clone(tolerations)
	for _, t := range terms.Tolerations {
		toleration := map[string]any{}
		for field, value := range map[string]string{"key": t.Key, "operator": t.Operator, "value": t.Value, "effect": t.Effect} {
			if value != "" {
				toleration[field] = value
			}
		}
		tolerations = append(tolerations, toleration)
	}
	spec["tolerations"] = tolerations
	return nil
}
