package ray

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

// checkTemplate refuses pods that the API server would refuse, as far as that
// depends on what Muster looks at, and pods whose place Muster cannot plan.
func checkTemplate(v *verdict, path string, spec *corev1.PodSpec) error {
	if len(spec.Containers) == 0 {
		return refuse(path+".containers", "is empty", "want at least one container; in a pod of Ray the first is Ray's")
	}
	names := map[string]bool{}
	for _, list := range []struct {
		field      string
		containers []corev1.Container
	}{{"containers", spec.Containers}, {"initContainers", spec.InitContainers}} {
		for i := range list.containers {
			where := fmt.Sprintf("%s.%s[%d]", path, list.field, i)
			if err := checkContainer(v, where, &list.containers[i], names); err != nil {
				return err
			}
		}
	}
	if err := checkHostPorts(path, spec); err != nil {
		return err
	}
	if name := spec.ServiceAccountName; name != "" {
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			return refuse(path+".serviceAccountName", fault.Quote(name)+" cannot name a service account", faults[0])
		}
	}
	checkPlace(v, path, spec)
	if err := checkConstraints(path, spec); err != nil {
		return err
	}
	if where, what, why := kube.BadPod(spec); why != "" {
		return refuse(path+"."+where, what, why)
	}
	return nil
}

func checkContainer(v *verdict, where string, container *corev1.Container, names map[string]bool) error {
	if faults := validation.IsDNS1123Label(container.Name); len(faults) > 0 {
		return refuse(where+".name", fault.Quote(container.Name)+" cannot name a container", faults[0])
	}
	if names[container.Name] {
		return refuse(where+".name", fault.Quote(container.Name)+" is the name of another container of the pod, or of one that KubeRay adds",
			"choose another")
	}
	names[container.Name] = true
	if strings.TrimSpace(container.Image) == "" {
		return refuse(where+".image", "is empty", "want the name of an image")
	}
	for i, port := range container.Ports {
		if port.HostPort < 0 || port.HostPort > 65535 {
			return refuse(fmt.Sprintf("%s.ports[%d].hostPort", where, i), fmt.Sprintf("is %d", port.HostPort), "want a port from 1 to 65535, or nothing")
		}
	}
	if len(container.Resources.Claims) > 0 {
		v.refuse(where+".resources.claims", "is set", "remove it: Muster does not plan dynamic resources")
	}
	return checkResources(where+".resources", &container.Resources)
}

// checkResources holds requests against limits as the API server does when the
// pod is created: then it is too late for the gang.
func checkResources(where string, r *corev1.ResourceRequirements) error {
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		limit, limited := r.Limits[name]
		field := fmt.Sprintf("%s.requests.%s", where, fault.Clip(string(name)))
		switch {
		case limited && request.Cmp(limit) > 0:
			return refuse(field, fmt.Sprintf("%s is more than the limit, which is %s", &request, &limit), "raise the limit or ask for less")
		case exact(name) && (!limited || request.Cmp(limit) != 0):
			return refuse(field, "differs from the limit", "want the same amount in requests and limits, or limits alone")
		}
	}
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			amount := list[name]
			if faults := validation.IsQualifiedName(string(name)); len(faults) > 0 {
				return refuse(where, fault.Quote(string(name))+" cannot name a resource", faults[0])
			}
			if !strings.Contains(string(name), "/") && !native(name) {
				return refuse(where, fault.Quote(string(name))+" is no resource of Kubernetes", `want its full name, such as "nvidia.com/gpu"`)
			}
			if extended(name) && amount.MilliValue()%1000 != 0 {
				return refuse(where+"."+string(name), amount.String()+" is not a whole number", `want whole ones, such as "1"`)
			}
		}
	}
	return nil
}

// native reports whether a container may ask for it under its short name.
func native(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// extended reports whether it is a resource that a device plugin or an operator
// provides.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/")
}

// exact reports whether a request must equal its limit.
func exact(name corev1.ResourceName) bool {
	return extended(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// checkHostPorts refuses a pod that asks for one port of its node twice.
func checkHostPorts(path string, spec *corev1.PodSpec) error {
	ports := kube.HostPorts(spec)
	for i, port := range ports {
		if slices.ContainsFunc(ports[:i], port.Conflicts) {
			return refuse(path+".containers", fmt.Sprintf("ask for host port %d twice", port.Port), "choose another for one of them")
		}
	}
	return nil
}

// checkPlace refuses what would put a pod elsewhere than the plan does.
func checkPlace(v *verdict, path string, spec *corev1.PodSpec) {
	switch {
	case spec.NodeName != "":
		v.refuse(path+".nodeName", "is "+fault.Quote(spec.NodeName),
			"remove it; to ask for a node use nodeSelector with "+kube.HostnameLabel)
	case spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName:
		v.refuse(path+".schedulerName", "is "+fault.Quote(spec.SchedulerName), "remove it: Muster chooses the nodes and kube-scheduler binds")
	case len(spec.SchedulingGates) > 0:
		v.refuse(path+".schedulingGates", "has "+fault.Quote(spec.SchedulingGates[0].Name),
			"remove it: the gang would hold its nodes until the gate is removed")
	case len(spec.ResourceClaims) > 0:
		v.refuse(path+".resourceClaims", "is set", "remove it: Muster does not plan dynamic resources")
	case spec.HostNetwork:
		v.refuse(path+".hostNetwork", "is true", "remove it, and list the ports as hostPort of the container")
	}
}
