package reconcile

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// maxRequestSets is how many PodTemplates a ProvisioningRequest takes.
const maxRequestSets = 32

// askedSet are pods that one PodTemplate is for.
type askedSet struct {
	podSet   string // the first of those that share it
	pods     int
	template map[string]any
}

// mergeSets has pod sets share a PodTemplate as the podSetMergePolicy wants and, where these are more
// than a request takes, those that need the same of nodes.
func mergeSets(sets []askedSet, policy string) ([]askedSet, error) {
	switch policy {
	case workload.IdenticalPodTemplates:
		sets = mergeEqual(sets, withoutOwnLabels)
	case workload.IdenticalScheduling:
		sets = mergeEqual(sets, schedulingOf)
	}
	if len(sets) > maxRequestSets {
		sets = mergeEqual(sets, schedulingOf)
	}
	if len(sets) > maxRequestSets {
		return nil, fmt.Errorf("%d pod sets lack nodes and need different ones: a ProvisioningRequest takes at most %d", len(sets), maxRequestSets)
	}
	return sets, nil
}

// mergeEqual merges pod sets whose templates are equal in what of returns.
func mergeEqual(sets []askedSet, of func(map[string]any) any) (merged []askedSet) {
	at := map[string]int{}
	for _, set := range sets {
		encoded, err := json.Marshal(of(set.template))
		i, known := at[string(encoded)]
		if err == nil && known {
			merged[i].pods += set.pods
			continue
		}
		at[string(encoded)] = len(merged)
		merged = append(merged, set)
	}
	return merged
}

// withoutOwnLabels is a template without the labels of its pod set.
func withoutOwnLabels(template map[string]any) any {
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	labels, metadata, template = maps.Clone(labels), maps.Clone(metadata), maps.Clone(template)
	maps.DeleteFunc(labels, func(key string, _ any) bool {
		return strings.HasPrefix(key, "muster.dev/") || strings.HasPrefix(key, "ray.io/")
	})
	metadata["labels"], template["metadata"] = labels, metadata
	return template
}

// schedulingOf is what a template says of the nodes that its pods need.
func schedulingOf(template map[string]any) any {
	spec, _ := template["spec"].(map[string]any)
	needs := map[string]any{}
	for _, field := range []string{"nodeSelector", "tolerations", "affinity", "resourceClaims", "overhead", "hostNetwork", "topologySpreadConstraints", "runtimeClassName"} {
		if value, there := spec[field]; there {
			needs[field] = value
		}
	}
	needs["resources"] = requestsOf(spec)
	for _, field := range []string{"containers", "initContainers"} {
		containers, _ := spec[field].([]any)
		each := make([]any, len(containers))
		for i, one := range containers {
			container, _ := one.(map[string]any)
			resources, _ := container["resources"].(map[string]any)
			each[i] = map[string]any{"requests": requestsOf(container), "claims": resources["claims"], "restartPolicy": container["restartPolicy"]}
		}
		needs[field] = each
	}
	return needs
}

// requestsOf are the requests of a container or a pod, each amount written in one way.
func requestsOf(of map[string]any) map[string]string {
	resources, _ := of["resources"].(map[string]any)
	requests, _ := resources["requests"].(map[string]any)
	written := make(map[string]string, len(requests))
	for name, amount := range requests {
		written[name] = fmt.Sprint(amount)
		if quantity, err := kube.ParseQuantity(written[name]); err == nil {
			written[name] = quantity.String()
		}
	}
	return written
}
