package kube

import (
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Requests returns a pod's effective requests, one pod slot included: the sum of its
// containers or the peak of its init containers, and the overhead, as kube-scheduler
// counts them.
func Requests(pod *corev1.Pod) (resource.List, error) {
	if err := sound(&pod.Spec); err != nil {
		return nil, err
	}
	effective := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	requests, err := Amounts(effective)
	if err != nil {
		return nil, err
	}
	for name, amount := range requests {
		if amount == 0 {
			delete(requests, name)
		}
	}
	requests[resource.Pods] = 1
	return requests, nil
}

// PodTemplate returns the scheduling constraints of a pod with this spec. The spec is as
// submitted: a limit without a request counts as the request, as the API server's
// default. What the namespace's defaults may add is in Unset, and what its LimitRanges are
// compared with in Asks.
func PodTemplate(spec *corev1.PodSpec) (workload.Template, error) {
	if err := sound(spec); err != nil {
		return workload.Template{}, err
	}
	defaulted := spec.DeepCopy()
	for _, containers := range [][]corev1.Container{defaulted.Containers, defaulted.InitContainers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources)
		}
	}
	defaultPodRequests(defaulted)
	requests, err := Requests(&corev1.Pod{Spec: *defaulted})
	if err != nil {
		return workload.Template{}, err
	}
	unset, err := unsetOf(defaulted)
	if err != nil {
		return workload.Template{}, err
	}
	return workload.Template{
		Requests: requests, Unset: unset, Asks: asksOf(defaulted), NodeSelector: spec.NodeSelector,
		Affinity: requiredTerms(spec.Affinity), Tolerations: tolerations(spec.Tolerations), HostPorts: HostPorts(spec),
	}, nil
}

// HostPorts returns the host ports that a pod uses: those of containers and of sidecar
// init containers.
func HostPorts(spec *corev1.PodSpec) []workload.HostPort {
	var ports []workload.HostPort
	list := func(container *corev1.Container) {
		for _, p := range container.Ports {
			port := p.HostPort
			if port == 0 && spec.HostNetwork {
				port = p.ContainerPort
			}
			if port > 0 {
				ports = append(ports, workload.HostPort{Port: port, Protocol: string(p.Protocol), IP: p.HostIP})
			}
		}
	}
	for i := range spec.Containers {
		list(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if policy := spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			list(&spec.InitContainers[i])
		}
	}
	return ports
}

func defaultRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, asked := r.Requests[name]; asked {
			continue
		}
		if r.Requests == nil {
			r.Requests = map[corev1.ResourceName]apiresource.Quantity{}
		}
		r.Requests[name] = limit
	}
}

// defaultPodRequests defaults the pod-level resources as the API server does: the request
// without a value is the sum of the containers' requests for the resource if they have
// any, else the limit.
func defaultPodRequests(spec *corev1.PodSpec) {
	if spec.Resources == nil || len(spec.Resources.Limits) == 0 {
		return
	}
	asked := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	defaults := corev1.ResourceRequirements{Requests: spec.Resources.Requests, Limits: corev1.ResourceList{}}
	for name, limit := range spec.Resources.Limits {
		if sum, ok := asked[name]; ok {
			limit = sum
		}
		defaults.Limits[name] = limit
	}
	defaultRequests(&defaults)
	spec.Resources.Requests = defaults.Requests
}

func requiredTerms(affinity *corev1.Affinity) []workload.NodeTerm {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var terms []workload.NodeTerm
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		terms = append(terms, workload.NodeTerm{
			Labels: requirements(term.MatchExpressions), Fields: requirements(term.MatchFields),
		})
	}
	return terms
}

func requirements(expressions []corev1.NodeSelectorRequirement) []workload.Requirement {
	var all []workload.Requirement
	for _, e := range expressions {
		all = append(all, workload.Requirement{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
	}
	return all
}

func tolerations(list []corev1.Toleration) []workload.Toleration {
	var all []workload.Toleration
	for _, t := range list {
		all = append(all, workload.Toleration{Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect)})
	}
	return all
}
