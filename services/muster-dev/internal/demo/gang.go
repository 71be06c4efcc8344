package demo

import (
	"encoding/json"
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/internal/client/manifest"
	"muster.dev/muster/services/muster/examples"
)

const gpu resource.Name = "nvidia.com/gpu"

// size is what the workers of a gang ask for, each.
type size struct {
	scarce   resource.Name // the resource that the story is about
	each     int64         // of it
	replicas int
}

// String returns it in words.
func (s size) String() string {
	return fmt.Sprintf("%d with %s each", s.replicas, amount(s.scarce, s.each))
}

// amount prints an amount with what it is of: "2 nvidia.com/gpu".
func amount(name resource.Name, n int64) string {
	return resource.Format(name, n) + " " + string(name)
}

// edit is what to change of an example. Empty fields change nothing.
type edit struct {
	name, namespace, image string
	// size makes the gang small but for the scarce resource: it is not known how much
	// memory a cluster of the user's has.
	size *size
}

// render returns an example with the edits, as a document to submit.
func render(example string, e edit) (manifest.Document, error) {
	content, err := examples.Read(example)
	if err != nil {
		return manifest.Document{}, err
	}
	var object rayCluster
	if err := yaml.Unmarshal(content, &object.fields); err != nil {
		return manifest.Document{}, fmt.Errorf("read example %q: %w", example, err)
	}
	if err := object.apply(e); err != nil {
		return manifest.Document{}, fmt.Errorf("edit example %q: %w", example, err)
	}
	encoded, err := json.Marshal(object.fields)
	if err != nil {
		return manifest.Document{}, fmt.Errorf("encode example %q: %w", example, err)
	}
	return manifest.Split(encoded)[0], nil
}

// rayCluster is a RayCluster manifest of package examples, which all have one
// worker group and one container per pod.
type rayCluster struct{ fields map[string]any }

func (r *rayCluster) apply(e edit) error {
	metadata, spec := child(r.fields, "metadata"), child(r.fields, "spec")
	set(metadata, "name", e.name)
	set(metadata, "namespace", e.namespace)
	groups, ok := spec["workerGroupSpecs"].([]any)
	if !ok || len(groups) != 1 {
		return fmt.Errorf("it has not one worker group")
	}
	worker, _ := groups[0].(map[string]any)
	for _, group := range []map[string]any{child(spec, "headGroupSpec"), worker} {
		container, err := containerOf(group)
		if err != nil {
			return err
		}
		set(container, "image", e.image)
		if e.size != nil {
			setResources(container, map[string]any{"cpu": "500m", "memory": "1Gi"})
		}
	}
	if e.size == nil {
		return nil
	}
	for _, field := range []string{"replicas", "minReplicas", "maxReplicas"} {
		worker[field] = e.size.replicas
	}
	container, err := containerOf(worker)
	if err != nil {
		return err
	}
	asked := map[string]any{"cpu": "500m", "memory": "1Gi"}
	asked[string(e.size.scarce)] = quantity(e.size.scarce, e.size.each)
	setResources(container, asked)
	return nil
}

func containerOf(group map[string]any) (map[string]any, error) {
	containers, ok := child(child(group, "template"), "spec")["containers"].([]any)
	if !ok || len(containers) != 1 {
		return nil, fmt.Errorf("a pod template has not one container")
	}
	container, _ := containers[0].(map[string]any)
	return container, nil
}

func child(object map[string]any, name string) map[string]any {
	found, _ := object[name].(map[string]any)
	return found
}

func set(object map[string]any, name, value string) {
	if value != "" {
		object[name] = value
	}
}

func setResources(container, asked map[string]any) {
	container["resources"] = map[string]any{"requests": asked, "limits": asked}
}

// quantity prints an amount as Kubernetes reads it.
func quantity(name resource.Name, amount int64) string {
	if name == resource.CPU {
		return strconv.FormatInt(amount, 10) + "m"
	}
	return strconv.FormatInt(amount, 10)
}

// free returns the largest amount on one node that takes pods, and the sum.
func free(nodes []query.Node, name resource.Name) (largest, sum int64) {
	for _, n := range nodes {
		if takesPods(n) {
			here := max(0, n.Free[name])
			largest, sum = max(largest, here), sum+here
		}
	}
	return largest, sum
}

// takesPods reports whether a pod without tolerations may come to the node.
func takesPods(n query.Node) bool {
	if !n.Ready || n.Cordoned {
		return false
	}
	for _, taint := range n.Taints {
		if taint.Effect != "PreferNoSchedule" {
			return false
		}
	}
	return true
}

// fill returns a size of which a second gang does not fit: workers that take
// more than half of the best node, which is too much for two on a node.
func fill(nodes []query.Node) (size, error) {
	s := size{scarce: gpu}
	largest, _ := free(nodes, gpu)
	if largest == 0 { // without GPUs the story uses CPUs
		s.scarce = resource.CPU
		largest, _ = free(nodes, resource.CPU)
	}
	if largest == 0 {
		return s, fmt.Errorf("none of the %d nodes has a GPU or a CPU free", len(nodes))
	}
	s.each = largest/2 + 1
	for _, n := range nodes {
		if takesPods(n) {
			s.replicas += int(max(0, n.Free[s.scarce]) / s.each)
		}
	}
	return s, nil
}

// fragmented returns the size of one worker that the nodes hold in sum and no
// node alone; false when what is free lies on one node.
func fragmented(nodes []query.Node, name resource.Name) (size, bool) {
	largest, sum := free(nodes, name)
	s := size{scarce: name, each: largest + 1, replicas: 1}
	return s, largest > 0 && s.each <= sum
}
