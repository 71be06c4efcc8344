package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/spec/capacity"
)

// Node returns a node for admission, without its pods' use.
func Node(cluster string, node *corev1.Node) (capacity.Node, error) {
	allocatable, err := Amounts(node.Status.Allocatable)
	if err != nil {
		return capacity.Node{}, fmt.Errorf("allocatable of node %q: %w", node.Name, err)
	}
	observed := capacity.Node{
		Cluster: cluster, Name: node.Name, Labels: node.Labels,
		Cordoned: node.Spec.Unschedulable, Created: node.CreationTimestamp.UTC(), Allocatable: allocatable,
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			observed.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	for _, taint := range node.Spec.Taints {
		observed.Taints = append(observed.Taints, capacity.Taint{Key: taint.Key, Value: taint.Value, Effect: string(taint.Effect)})
	}
	return observed, nil
}
