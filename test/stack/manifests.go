package stack

import (
	"encoding/json"
	"fmt"
	"maps"
)

// RayCluster is a manifest of a head (1 CPU, 1Gi) and a number of workers (1 CPU,
// 1Gi and a number of GPUs each).
func RayCluster(name string, workers, gpus int) string {
	return encoded(map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"name": name},
		"spec": clusterSpec(workers, gpus),
	})
}

// RayJob is a manifest of a job on such a cluster. outcome and duration are what
// the dev cluster plays.
func RayJob(name string, workers, gpus int, outcome, duration string) string {
	return encoded(map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayJob",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{
			"devcluster.muster.dev/job-outcome": outcome, "devcluster.muster.dev/job-duration": duration,
		}},
		"spec": map[string]any{
			"entrypoint": "python train.py", "shutdownAfterJobFinishes": true, "rayClusterSpec": clusterSpec(workers, gpus),
		},
	})
}

// Annotated adds annotations, given as key, value, key, value, to a manifest.
func Annotated(manifest string, annotations ...string) string {
	return changed(manifest, func(tree map[string]any) {
		metadata := tree["metadata"].(map[string]any)
		all, _ := metadata["annotations"].(map[string]any)
		if all == nil {
			all = map[string]any{}
			metadata["annotations"] = all
		}
		for i := 0; i+1 < len(annotations); i += 2 {
			all[annotations[i]] = annotations[i+1]
		}
	})
}

// Labelled adds a label to a manifest.
func Labelled(manifest, label, value string) string {
	return changed(manifest, func(tree map[string]any) {
		metadata := tree["metadata"].(map[string]any)
		all, _ := metadata["labels"].(map[string]any)
		if all == nil {
			all = map[string]any{}
			metadata["labels"] = all
		}
		all[label] = value
	})
}

// With sets fields of a manifest's spec.
func With(manifest string, fields map[string]any) string {
	return changed(manifest, func(tree map[string]any) { maps.Copy(tree["spec"].(map[string]any), fields) })
}

// WorkerTemplate changes the pod template of the workers of a RayCluster.
func WorkerTemplate(manifest string, change func(template map[string]any)) string {
	return changed(manifest, func(tree map[string]any) {
		groups := tree["spec"].(map[string]any)["workerGroupSpecs"].([]any)
		change(groups[0].(map[string]any)["template"].(map[string]any))
	})
}

func changed(manifest string, change func(map[string]any)) string {
	var tree map[string]any
	if err := json.Unmarshal([]byte(manifest), &tree); err != nil {
		panic(err) // a manifest of this package always can
	}
	change(tree)
	return encoded(tree)
}

func clusterSpec(workers, gpus int) map[string]any {
	return map[string]any{
		"rayVersion":    "2.54.0",
		"headGroupSpec": map[string]any{"rayStartParams": map[string]any{}, "template": podTemplate("ray-head", 0)},
		"workerGroupSpecs": []any{map[string]any{
			"groupName": "workers", "replicas": workers, "minReplicas": workers, "maxReplicas": workers,
			"rayStartParams": map[string]any{}, "template": podTemplate("ray-worker", gpus),
		}},
	}
}

func podTemplate(container string, gpus int) map[string]any {
	resources := map[string]any{"cpu": "1", "memory": "1Gi"}
	if gpus > 0 {
		resources["nvidia.com/gpu"] = fmt.Sprint(gpus)
	}
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": container, "image": "rayproject/ray:2.54.0",
		"resources": map[string]any{"requests": resources, "limits": resources},
	}}}}
}

func encoded(manifest map[string]any) string {
	data, err := json.Marshal(manifest)
	if err != nil {
		panic(err) // plain data always can
	}
	return string(data)
}
