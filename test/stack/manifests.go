package stack

import (
	"encoding/json"
	"fmt"
)

// RayCluster is a manifest of a head (1 CPU, 1Gi) and so many workers (1 CPU,
// 1Gi and so many GPUs).
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
