package queueobjects

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/policyfile/kueue"
)

// refusedKey is the annotation of a refused ResourceFlavor, which has no status.
const refusedKey = "muster.dev/refused"

const (
	// mostParts is how many refused objects the status of a ClusterQueue names.
	mostParts = 5
	// longestRefusal bounds the annotation.
	longestRefusal = 2000
)

// refusedParts names the refused objects that a ClusterQueue refers to, of kinds without a
// status. A former version of them, if there is one, counts.
func (v view) refusedParts(object *unstructured.Unstructured) string {
	var all strings.Builder
	named := 0
	for _, key := range partsOf(object) {
		why := v.refused[key]
		if why == "" || named == mostParts {
			continue
		}
		named++
		if v.deletes(key.Kind, key.Name) {
			fmt.Fprintf(&all, "; %s %q is being deleted, and stays while it is used", key.Kind, key.Name)
		} else {
			fmt.Fprintf(&all, "; %s %q is refused: %s", key.Kind, key.Name, why)
		}
	}
	return all.String()
}

// partsOf are the objects that a ClusterQueue refers to. A field of another type than it
// should be has none: the queue itself is refused for it.
func partsOf(object *unstructured.Unstructured) []kueue.Key {
	if object.GetKind() != "ClusterQueue" {
		return nil
	}
	var keys []kueue.Key
	add := func(kind string, name any) {
		if text, isText := name.(string); isText && text != "" {
			keys = append(keys, kueue.Key{Kind: kind, Name: text})
		}
	}
	spec, _ := object.Object["spec"].(map[string]any)
	add("Cohort", spec["cohort"])
	add("Cohort", spec["cohortName"])
	groups, _ := spec["resourceGroups"].([]any)
	for _, group := range groups {
		group, _ := group.(map[string]any)
		flavors, _ := group["flavors"].([]any)
		for _, flavor := range flavors {
			flavor, _ := flavor.(map[string]any)
			add("ResourceFlavor", flavor["name"])
		}
	}
	checks, _ := spec["admissionChecks"].([]any)
	for _, check := range checks {
		add("AdmissionCheck", check)
	}
	strategy, _ := spec["admissionChecksStrategy"].(map[string]any)
	flavored, _ := strategy["admissionChecks"].([]any)
	for _, check := range flavored {
		check, _ := check.(map[string]any)
		add("AdmissionCheck", check["name"])
	}
	return keys
}

// annotate writes on a ResourceFlavor why it is refused, and removes that when it no longer
// is.
func (s *Sync) annotate(ctx context.Context, object *unstructured.Unstructured, refused string) error {
	if object.GetKind() != "ResourceFlavor" || isDeleted(object) {
		return nil
	}
	if len(refused) > longestRefusal {
		refused = strings.ToValidUTF8(refused[:longestRefusal], "") + "..."
	}
	if object.GetAnnotations()[refusedKey] == refused {
		return nil
	}
	return s.Cluster.Annotate(ctx, object, refusedKey, refused)
}
