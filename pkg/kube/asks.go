package kube

import (
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// asksOf returns what each container of a pod asks for, in the order in which they start. It is
// nil, which is not known, for a pod with resources of its own, one with very many containers,
// and one with fractions of a byte, which add up to other amounts than ours.
func asksOf(defaulted *corev1.PodSpec) [][]workload.ContainerAsk {
	if defaulted.Resources != nil {
		return nil
	}
	pod := make([]workload.ContainerAsk, 0, len(defaulted.InitContainers)+len(defaulted.Containers))
	for i := range defaulted.InitContainers {
		c := &defaulted.InitContainers[i]
		ask, known := askOf(c)
		if !known {
			return nil
		}
		ask.Kind = workload.AskInit
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			ask.Kind = workload.AskSidecar
		}
		pod = append(pod, ask)
	}
	for i := range defaulted.Containers {
		ask, known := askOf(&defaulted.Containers[i])
		if !known {
			return nil
		}
		pod = append(pod, ask)
	}
	asks := [][]workload.ContainerAsk{pod}
	if workload.SizeOfAsks(asks) > workload.MostAsks {
		return nil
	}
	return asks
}

func askOf(c *corev1.Container) (workload.ContainerAsk, bool) {
	requests, known := exactly(c.Resources.Requests)
	limits, alsoKnown := exactly(c.Resources.Limits)
	return workload.ContainerAsk{Name: c.Name, Requests: requests, Limits: limits}, known && alsoKnown
}

// exactly returns the amounts of a list, nil of an empty one, and whether they are what the list
// has: not rounded, and not too large.
func exactly(list corev1.ResourceList) (resource.List, bool) {
	if len(list) == 0 {
		return nil, true
	}
	amounts, err := Amounts(list)
	if err != nil {
		return nil, false
	}
	for name, quantity := range list {
		if name != corev1.ResourceCPU && !whole(quantity) {
			return nil, false
		}
	}
	return amounts, true
}
