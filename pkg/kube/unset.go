package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// unsetOf returns how the requests of a pod depend on the defaults of its namespace, which
// the API server gives to each container that asks none of a resource; nil when they do not.
// It goes through the containers as kube-scheduler does: the sum of those that run together,
// or the peak of the init containers, and the overhead.
func unsetOf(spec *corev1.PodSpec) (workload.Unset, error) {
	unset := workload.Unset{}
	for _, name := range []resource.Name{resource.CPU, resource.Memory} {
		if spec.Resources != nil && has(spec.Resources.Requests, name) {
			continue // that of the pod counts
		}
		sums, open, err := sumsOf(spec, name)
		if err != nil {
			return nil, err
		}
		if !open {
			continue
		}
		for _, sum := range sums {
			unset.Add(name, sum)
		}
	}
	if len(unset) == 0 {
		return nil, nil
	}
	return unset, nil
}

// sumsOf returns the sums of a resource that a pod may need at a time; open is whether a
// container asks none of it.
func sumsOf(spec *corev1.PodSpec, name resource.Name) (sums []workload.DefaultSum, open bool, err error) {
	plus := func(sum workload.DefaultSum, c *corev1.Container) workload.DefaultSum {
		amounts, unreadable := Amounts(only(c.Resources.Requests, name))
		if unreadable != nil {
			err = unreadable
		}
		if !has(c.Resources.Requests, name) {
			open = true
			sum.Times++
		}
		sum.Base = resource.List{name: sum.Base}.Plus(amounts)[name]
		return sum
	}
	overhead, unreadable := Amounts(only(spec.Overhead, name))
	if unreadable != nil {
		return nil, false, unreadable
	}
	together := workload.DefaultSum{Base: overhead[name]} // sidecars so far
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		sum := plus(together, c)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			together = sum
		}
		sums = append(sums, sum)
	}
	for i := range spec.Containers {
		together = plus(together, &spec.Containers[i])
	}
	return append(sums, together), open, err
}

func has(list corev1.ResourceList, name resource.Name) bool {
	_, there := list[corev1.ResourceName(name)]
	return there
}

// only returns the list with one of its resources.
func only(list corev1.ResourceList, name resource.Name) corev1.ResourceList {
	one := maps.Clone(list)
	maps.DeleteFunc(one, func(other corev1.ResourceName, _ apiresource.Quantity) bool {
		return other != corev1.ResourceName(name)
	})
	return one
}

// Defaults returns the default requests that a LimitRange gives to containers.
func Defaults(limits *corev1.LimitRange) resource.List {
	defaults := resource.List{}
	for _, item := range limits.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(item.DefaultRequest)) {
			if !workload.MayDefault(resource.Name(name)) {
				continue
			}
			amounts, err := Amounts(only(item.DefaultRequest, resource.Name(name)))
			if err == nil { // else the API server refuses every pod
				defaults = defaults.Max(amounts)
			}
		}
	}
	return defaults
}
