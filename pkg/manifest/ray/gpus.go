package ray

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/spec/fault"
)

// warnOfGPUs names the groups that tell Ray of other GPUs than their pods have:
// neither rayStartParams nor the group's resources change what a pod asks for.
func (c *clusterSpec) warnOfGPUs() {
	head := &c.spec.HeadGroupSpec
	c.warnOfGroup(c.path+".headGroupSpec", head.RayStartParams, head.Resources, head.Template.Spec)
	for i := range c.spec.WorkerGroupSpecs {
		g := &c.spec.WorkerGroupSpecs[i]
		c.warnOfGroup(c.groupPath(i), g.RayStartParams, g.Resources, g.Template.Spec)
	}
}

func (c *clusterSpec) warnOfGroup(where string, params, resources map[string]string, pod corev1.PodSpec) {
	told, field := params["num-gpus"], ".rayStartParams.num-gpus"
	if told == "" {
		told, field = resources["GPU"], ".resources.GPU"
	}
	if told == "" || len(pod.Containers) == 0 {
		return
	}
	has := gpus(pod.Containers[0].Resources.Limits)
	if told == fmt.Sprint(has) {
		return
	}
	c.verdict.warnings = append(c.verdict.warnings, fmt.Sprintf(
		"%s%s: is %s, but the limits of its Ray container have %d GPUs; Ray would count on the former, and only the latter are reserved: make them equal, or leave it out",
		where, field, fault.Quote(told), has))
}

// mig is how slices of a GPU are called.
var mig = regexp.MustCompile(`^nvidia\.com/mig-`)

// gpus counts as KubeRay does when the manifest does not give the number.
func gpus(limits corev1.ResourceList) int64 {
	var n int64
	for name, amount := range limits {
		if strings.HasSuffix(string(name), "gpu") || mig.MatchString(string(name)) {
			n += amount.Value()
		}
	}
	return n
}
