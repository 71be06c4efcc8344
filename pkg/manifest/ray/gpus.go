package ray

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/manifest/podpolicy"
	"muster.dev/muster/pkg/spec/fault"
)

// warnOfAmounts names the groups whose pods ask for nothing, and those that tell Ray of
// other GPUs than their pods have: neither rayStartParams nor the group's resources change
// what a pod asks for.
func (c *clusterSpec) warnOfAmounts() {
	head := &c.spec.HeadGroupSpec
	c.warnOfNoRequests(c.path+".headGroupSpec", &head.Template.Spec)
	c.warnOfGroup(c.path+".headGroupSpec", head.RayStartParams, head.Resources, head.Template.Spec)
	for i := range c.spec.WorkerGroupSpecs {
		g := &c.spec.WorkerGroupSpecs[i]
		c.warnOfNoRequests(c.groupPath(i), &g.Template.Spec)
		c.warnOfGroup(c.groupPath(i), g.RayStartParams, g.Resources, g.Template.Spec)
	}
}

// warnOfNoRequests names a group whose pods ask for nothing but what KubeRay adds.
func (c *clusterSpec) warnOfNoRequests(where string, pod *corev1.PodSpec) {
	if !podpolicy.Requests(pod) {
		c.verdict.warnings = append(c.verdict.warnings,
			where+".template.spec: no container has requests or limits, so its pods get places on nodes however full; set them")
	}
}

func (c *clusterSpec) warnOfGroup(where string, params, resources map[string]string, pod corev1.PodSpec) {
	wanted, field := params["num-gpus"], ".rayStartParams.num-gpus"
	if wanted == "" {
		wanted, field = resources["GPU"], ".resources.GPU"
	}
	if wanted == "" || len(pod.Containers) == 0 {
		return
	}
	has := gpus(pod.Containers[0].Resources.Limits)
	if wanted == fmt.Sprint(has) {
		return
	}
	c.verdict.warnings = append(c.verdict.warnings, fmt.Sprintf(
		"%s%s: is %s, but the limits of its Ray container have %d GPUs; Ray would count on the former, and only the latter are reserved: make them equal, or leave it out",
		where, field, fault.Quote(wanted), has))
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
