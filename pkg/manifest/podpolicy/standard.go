package podpolicy

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	standards "k8s.io/pod-security-admission/policy"

	"muster.dev/muster/pkg/spec/workload"
)

// The version of Kubernetes whose Pod Security Standards count.
const (
	standardMajor   = 1
	standardMinor   = 36
	standardVersion = "v1.36"
)

// evaluator has Kubernetes' own checks. It is made once and never changes.
var evaluator = sync.OnceValues(func() (standards.Evaluator, error) {
	return standards.NewEvaluator(standards.DefaultChecks(), nil)
})

// standard holds a pod against the Pod Security Standard of the mode. What the
// queue's lists allow is taken out of a copy before.
func (p policy) standard(where string, metadata *metav1.ObjectMeta, spec *corev1.PodSpec) error {
	checks, err := evaluator()
	if err != nil {
		return denied(where, "cannot be checked: "+err.Error(), "report this as a defect of Muster")
	}
	level := api.LevelVersion{Level: api.LevelBaseline, Version: api.MajorMinorVersion(standardMajor, standardMinor)}
	if p.restricted() {
		level.Level = api.LevelRestricted
	}
	found := standards.AggregateCheckResults(checks.EvaluatePod(level, metadata, p.withoutAllowed(spec)))
	if found.Allowed {
		return nil
	}
	return denied(where, found.ForbiddenDetail(),
		"meet the Pod Security Standard "+string(level.Level)+" of Kubernetes "+standardVersion+", or have the queue's podPolicy allow it")
}

// withoutAllowed returns a copy of the pod without what the queue allows.
func (p policy) withoutAllowed(original *corev1.PodSpec) *corev1.PodSpec {
	spec := original.DeepCopy()
	// The standard asks less of a pod with a user namespace. Nodes that know none
	// would run it without.
	spec.HostUsers = nil
	onHost := spec.HostNetwork && p.HostNetwork // it has the node's ports
	spec.HostNetwork = spec.HostNetwork && !p.HostNetwork
	spec.HostPID = spec.HostPID && !p.HostPID
	spec.HostIPC = spec.HostIPC && !p.HostIPC
	spec.Volumes = slices.DeleteFunc(spec.Volumes, p.allowsVolume)
	if spec.SecurityContext != nil {
		spec.SecurityContext.Sysctls = slices.DeleteFunc(spec.SecurityContext.Sysctls, func(s corev1.Sysctl) bool { return allows(p.Sysctls, s.Name) })
	}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			p.takeOut(&containers[i], onHost)
		}
	}
	return spec
}

func (p policy) takeOut(c *corev1.Container, onHost bool) {
	if p.HostPorts || onHost {
		for i := range c.Ports {
			c.Ports[i].HostPort = 0
		}
	}
	s := c.SecurityContext
	if s == nil {
		return
	}
	if p.Privileged {
		s.Privileged = nil
	}
	if s.Capabilities != nil {
		s.Capabilities.Add = slices.DeleteFunc(s.Capabilities.Add, func(added corev1.Capability) bool {
			return allows(p.capabilities(), strings.TrimPrefix(string(added), "CAP_"))
		})
	}
}

// capabilities that may be added beyond the standard's. Profilers of Ray trace
// their own processes.
func (p policy) capabilities() []string {
	if p.Mode == workload.PodsRestricted {
		return p.Capabilities
	}
	return append([]string{"SYS_PTRACE"}, p.Capabilities...)
}

// hostPath is the kind of volume that is a directory of the node.
const hostPath = "hostPath"

// allowsVolume reports whether the queue's lists allow everything that the volume
// is.
func (p policy) allowsVolume(v corev1.Volume) bool {
	source := reflect.ValueOf(v.VolumeSource)
	for i, kind := range volumeKinds() {
		if source.Field(i).IsNil() || allows(p.Volumes, kind) || kind == hostPath && p.mounts(v.HostPath.Path) {
			continue
		}
		return false
	}
	return true
}

// volumeKinds are the fields of a VolumeSource, in their order.
func volumeKinds() []string {
	source := reflect.TypeFor[corev1.VolumeSource]()
	kinds := make([]string, source.NumField())
	for i := range kinds {
		kinds[i], _, _ = strings.Cut(source.Field(i).Tag.Get("json"), ",")
	}
	return kinds
}
