package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/manifest/unescaped"
	"muster.dev/muster/pkg/spec/workload"
)

// Stamp returns the object of an item to create for one attempt of a workload. Of
// in, the name is taken from the object.
func (b Bundle) Stamp(item Item, in ray.StampInput) (json.RawMessage, error) {
	stamped, err := item.stamp(in)
	if err != nil || b.Owner == nil {
		return stamped, err
	}
	tree, err := parse(stamped)
	if err != nil {
		return nil, err
	}
	// No controller reference: only Muster manages the object while its owner lives.
	child(tree, "metadata")["ownerReferences"] = []any{map[string]any{
		"apiVersion": b.Owner.APIVersion, "kind": b.Owner.Kind, "name": b.Owner.Name, "uid": b.Owner.UID,
	}}
	return unescaped.JSON(tree)
}

func (i Item) stamp(in ray.StampInput) (json.RawMessage, error) {
	id, err := i.Identity()
	if err != nil {
		return nil, err
	}
	in.Name = id.Name
	if IsRay(id) {
		return i.stampRay(id, in)
	}
	tree, err := parse(i.Object)
	if err != nil {
		return nil, fmt.Errorf("stamp %s of workload %s: %w", id, in.Workload, err)
	}
	metadata := child(tree, "metadata")
	metadata["namespace"] = in.Namespace
	setLabels(metadata, map[string]string{
		kube.WorkloadLabel: string(in.Workload), kube.ClusterLabel: in.Cluster,
		kube.AttemptLabel: strconv.Itoa(in.Attempt), kube.QueueLabel: in.Queue,
	})
	child(metadata, "annotations")[kube.EpochKey] = strconv.FormatInt(in.Epoch, 10)
	for _, template := range i.Templates {
		pod, err := At(tree, template.Path)
		if err != nil {
			return nil, fmt.Errorf("stamp %s of workload %s: %w", id, in.Workload, err)
		}
		if err := stampPod(pod, template.PodSet, in); err != nil {
			return nil, fmt.Errorf("stamp %s of workload %s: %w", id, in.Workload, err)
		}
	}
	return unescaped.JSON(tree)
}

// IsRay reports whether package ray knows the object's pods.
func IsRay(id Identity) bool {
	return strings.HasPrefix(id.APIVersion, "ray.io/") && (id.Kind == ray.RayCluster || id.Kind == ray.RayJob || id.Kind == ray.RayService)
}

func stampPod(pod map[string]any, podSet string, in ray.StampInput) error {
	setLabels(child(pod, "metadata"), map[string]string{
		kube.WorkloadLabel: string(in.Workload), kube.ClusterLabel: in.Cluster,
		kube.AttemptLabel: strconv.Itoa(in.Attempt), kube.PodSetLabel: podSet,
	})
	for key, value := range in.Annotations[podSet] {
		child(child(pod, "metadata"), "annotations")[key] = value
	}
	spec := child(pod, "spec")
	for _, terms := range in.Terms {
		if terms.PodSet == podSet {
			if err := errors.Join(ray.AddTerms(spec, terms), ray.AddMetadata(child(pod, "metadata"), terms)); err != nil {
				return err
			}
		}
	}
	if in.Trusted || in.Unplaced {
		return nil
	}
	gates, _ := spec["schedulingGates"].([]any)
	spec["schedulingGates"] = append(append([]any{}, gates...), map[string]any{"name": kube.PlacementGate})
	return nil
}

// stampRay has package ray stamp the object, under the names of pod sets that it
// knows.
func (i Item) stampRay(id Identity, in ray.StampInput) (json.RawMessage, error) {
	var placements []workload.Placement
	for _, p := range in.Placements {
		if name, ours := strings.CutPrefix(p.PodSet, i.PodSetPrefix); ours {
			p.PodSet = name
			placements = append(placements, p)
		}
	}
	in.Placements = placements
	var ours []workload.PodSetTerms
	for _, terms := range in.Terms {
		if name, of := strings.CutPrefix(terms.PodSet, i.PodSetPrefix); of {
			terms.PodSet = name
			ours = append(ours, terms)
		}
	}
	in.Terms = ours
	annotations := map[string]map[string]string{}
	for podSet, added := range in.Annotations {
		if name, of := strings.CutPrefix(podSet, i.PodSetPrefix); of {
			annotations[name] = added
		}
	}
	in.Annotations = annotations
	sizes := map[string]int{}
	for podSet, pods := range in.Sizes {
		if name, of := strings.CutPrefix(podSet, i.PodSetPrefix); of {
			sizes[name] = pods
		}
	}
	in.Sizes = sizes
	stamped, err := ray.Stamp(i.Object, id.Kind, in)
	if err != nil || i.PodSetPrefix == "" {
		return stamped, err
	}
	tree, err := parse(stamped)
	if err != nil {
		return nil, err
	}
	prefixPodSets(tree, i.PodSetPrefix)
	return unescaped.JSON(tree)
}

// prefixPodSets renames the pod sets that the labels of templates tell.
func prefixPodSets(value any, prefix string) {
	switch v := value.(type) {
	case map[string]any:
		if labels, isMap := v["labels"].(map[string]any); isMap {
			if name, isText := labels[kube.PodSetLabel].(string); isText {
				labels[kube.PodSetLabel] = prefix + name
			}
		}
		for _, inner := range v {
			prefixPodSets(inner, prefix)
		}
	case []any:
		for _, inner := range v {
			prefixPodSets(inner, prefix)
		}
	}
}

func setLabels(metadata map[string]any, labels map[string]string) {
	present := child(metadata, "labels")
	delete(present, kube.KueueQueueLabel)
	for key, value := range labels {
		present[key] = value
	}
}

// At returns the map that a path leads to.
func At(tree map[string]any, path []string) (map[string]any, error) {
	var value any = tree
	for n, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("%s has no element %q", strings.Join(path[:n], "."), step)
			}
			value = v[i]
		default:
			return nil, fmt.Errorf("%s is neither object nor list", strings.Join(path[:n], "."))
		}
	}
	found, isMap := value.(map[string]any)
	if !isMap {
		return nil, fmt.Errorf("%s is no object", strings.Join(path, "."))
	}
	return found, nil
}

// child returns the map in a field, which is made when it is missing or null.
func child(object map[string]any, field string) map[string]any {
	if inner, isMap := object[field].(map[string]any); isMap {
		return inner
	}
	inner := map[string]any{}
	object[field] = inner
	return inner
}

func parse(data []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	tree := map[string]any{}
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	return tree, nil
}
