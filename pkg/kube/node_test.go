package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
)

func TestNode(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{HostnameLabel: "host-1", "zone": "a"}, CreationTimestamp: metav1.Unix(1_000_000, 0)},
		Spec: corev1.NodeSpec{
			Unschedulable: true,
			Taints:        []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			Allocatable: quantities("cpu", "7910m", "memory", "64Gi", "pods", "110", "nvidia.com/gpu", "8"),
			Capacity:    quantities("cpu", "8"),
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			},
		},
	}
	want := capacity.Node{
		Cluster: "c1", Name: "n1", Ready: true, Cordoned: true, Created: time.Unix(1_000_000, 0).UTC(),
		Labels:      map[string]string{HostnameLabel: "host-1", "zone": "a"},
		Taints:      []capacity.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}},
		Allocatable: resource.List{"cpu": 7910, "memory": 64 << 30, "pods": 110, "nvidia.com/gpu": 8},
	}
	got, err := Node("c1", node)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	node.Status.Conditions[1].Status = corev1.ConditionUnknown
	if got, err = Node("c1", node); err != nil || got.Ready {
		t.Errorf("a node whose kubelet is silent: ready %v, error %v; want not ready", got.Ready, err)
	}
	node.Status.Allocatable = quantities("memory", "-1")
	if _, err = Node("c1", node); err == nil || !strings.Contains(err.Error(), `allocatable of node "n1": memory: -1 is negative`) {
		t.Errorf("negative allocatable: error %v", err)
	}
}
