package ray

import (
	"encoding/json"
	"strconv"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"

	"muster.dev/muster/pkg/kube"
)

// capSize makes the autoscaler stay within its maximum, which was admitted.
func capSize(group map[string]any) error {
	var typed rayv1.WorkerGroupSpec
	if err := kube.Decode("", group, &typed); err != nil {
		return err
	}
	spec := rayv1.RayClusterSpec{WorkerGroupSpecs: []rayv1.WorkerGroupSpec{typed}}
	setDefaults(&spec, map[string]any{"workerGroupSpecs": []any{group}})
	group["maxReplicas"] = json.Number(strconv.Itoa(int(*spec.WorkerGroupSpecs[0].MaxReplicas)))
	return nil
}

// setSize has KubeRay create that number of pods of a group. It creates no fewer replicas
// than minReplicas.
func setSize(group map[string]any, pods int) error {
	var typed rayv1.WorkerGroupSpec
	if err := kube.Decode("", group, &typed); err != nil {
		return err
	}
	replicas := pods / max(1, int(typed.NumOfHosts))
	group["replicas"] = json.Number(strconv.Itoa(replicas))
	if typed.MinReplicas != nil && int(*typed.MinReplicas) > replicas {
		group["minReplicas"] = json.Number(strconv.Itoa(replicas))
	}
	return nil
}
