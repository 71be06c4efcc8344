package autoscaler

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// nodesFor returns how many nodes of the template hold the pods, first fit, the largest
// first; false when some pod does not fit an empty one.
func nodesFor(template *corev1.Node, pods []*corev1.PodSpec) (int, bool) {
	slices.SortStableFunc(pods, func(a, b *corev1.PodSpec) int { return cmp.Compare(weight(b, template), weight(a, template)) })
	var free []corev1.ResourceList
	for _, pod := range pods {
		asked := requestsOf(pod)
		at := slices.IndexFunc(free, func(left corev1.ResourceList) bool { return hasRoom(left, asked) })
		if at < 0 {
			empty := template.Status.Allocatable.DeepCopy()
			if !hasRoom(empty, asked) {
				return 0, false
			}
			free, at = append(free, empty), len(free)
		}
		for name, amount := range asked {
			left := free[at][name]
			left.Sub(amount)
			free[at][name] = left
		}
	}
	return len(free), true
}

// weight is the largest fraction of a node that the pod requests.
func weight(pod *corev1.PodSpec, node *corev1.Node) float64 {
	most := 0.0
	for name, amount := range requestsOf(pod) {
		if has := node.Status.Allocatable[name]; !has.IsZero() {
			most = max(most, amount.AsApproximateFloat64()/has.AsApproximateFloat64())
		}
	}
	return most
}

// hasRoom reports whether what is left covers what is asked.
func hasRoom(left, asked corev1.ResourceList) bool {
	for name, amount := range asked {
		if has := left[name]; amount.Cmp(has) > 0 {
			return false
		}
	}
	return true
}

// requestsOf returns what the scheduler counts for a pod without sidecars.
func requestsOf(pod *corev1.PodSpec) corev1.ResourceList {
	sum := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	for _, container := range pod.Containers {
		for name, amount := range requested(container) {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	for _, container := range pod.InitContainers {
		for name, amount := range requested(container) {
			if has := sum[name]; amount.Cmp(has) > 0 {
				sum[name] = amount
			}
		}
	}
	return sum
}

// requested returns a container's requests, which its limits complete.
func requested(container corev1.Container) corev1.ResourceList {
	asked := container.Resources.Limits.DeepCopy()
	if asked == nil {
		asked = corev1.ResourceList{}
	}
	for name, amount := range container.Resources.Requests {
		asked[name] = amount
	}
	return asked
}

// admits reports whether pods may go to nodes of the template: selectors, affinity, taints.
func admits(template *corev1.Node, pod *corev1.PodSpec) bool {
	of := &corev1.Pod{Spec: *pod}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(of).Match(template)
	if err != nil || !matches {
		return false
	}
	for i := range template.Spec.Taints {
		taint := &template.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	return true
}

func tolerates(t corev1.Toleration, taint *corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect:
		return false
	case t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return t.Key != "" && t.Value == taint.Value
}
