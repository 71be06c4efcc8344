package autoscaler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func podOf(requests map[string]string, edit func(*corev1.PodSpec)) *corev1.PodSpec {
	list := corev1.ResourceList{}
	for name, amount := range requests {
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list}}}}
	if edit != nil {
		edit(pod)
	}
	return pod
}

func nodeOf(allocatable map[string]string) *corev1.Node {
	node := &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}}}
	for name, amount := range allocatable {
		node.Status.Allocatable[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return node
}

func TestNodesForPods(t *testing.T) {
	t.Parallel()
	node := nodeOf(map[string]string{"cpu": "8", "nvidia.com/gpu": "4"})
	of := func(gpus string, count int) (pods []*corev1.PodSpec) {
		for range count {
			pods = append(pods, podOf(map[string]string{"nvidia.com/gpu": gpus}, nil))
		}
		return pods
	}
	for name, test := range map[string]struct {
		pods []*corev1.PodSpec
		want int
		fits bool
	}{
		"none":                  {nil, 0, true},
		"one of the whole node": {of("4", 1), 1, true},
		"three on two nodes":    {of("2", 3), 2, true},
		"large ones first":      {append(of("1", 2), of("3", 2)...), 2, true},
		"larger than a node":    {of("5", 1), 0, false},
		"limits count as requests": {[]*corev1.PodSpec{podOf(nil, func(p *corev1.PodSpec) {
			p.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}
		})}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, fits := nodesFor(node, test.pods); fits != test.fits || fits && got != test.want {
				t.Errorf("nodesFor says %d nodes, %v; want %d, %v", got, fits, test.want, test.fits)
			}
		})
	}
}

func TestAdmits(t *testing.T) {
	t.Parallel()
	node := nodeOf(nil)
	node.Labels = map[string]string{"gpu": "l4"}
	node.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	tolerated := corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}
	for name, test := range map[string]struct {
		pod  func(*corev1.PodSpec)
		want bool
	}{
		"no toleration": {nil, false},
		"toleration":    {func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{tolerated} }, true},
		"another value": {func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Value: "absent"}} }, false},
		"selector": {func(p *corev1.PodSpec) {
			p.Tolerations, p.NodeSelector = []corev1.Toleration{tolerated}, map[string]string{"gpu": "l4"}
		}, true},
		"another selector": {func(p *corev1.PodSpec) {
			p.Tolerations, p.NodeSelector = []corev1.Toleration{tolerated}, map[string]string{"gpu": "t4"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := admits(node, podOf(nil, test.pod)); got != test.want {
				t.Errorf("admits says %v, want %v", got, test.want)
			}
		})
	}
}
