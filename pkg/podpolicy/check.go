package podpolicy

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	sigsjson "sigs.k8s.io/json"

	"muster.dev/muster/pkg/workload"
)

// Check holds every pod that a manifest, as JSON, describes against the policy:
// wherever an object has containers it is taken for a pod. No manifest describes
// none. The error wraps ErrDenied and says what, where, and what would be right.
func Check(rules workload.PodPolicy, manifest json.RawMessage) error {
	if rules.Mode == workload.PodsUnchecked || len(manifest) == 0 {
		return nil
	}
	p := policy{rules}
	var tree any
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(manifest, &tree); err != nil {
		return denied("manifest", "cannot be read: "+err.Error(), "write it as JSON")
	}
	return p.walk("", tree)
}

func denied(where, what, remedy string) error {
	return fmt.Errorf("%w by the queue's pod policy: %s: %s; %s", ErrDenied, where, what, remedy)
}

func (p policy) walk(where string, node any) error {
	switch n := node.(type) {
	case map[string]any:
		if err := p.object(where, n); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(n)) {
			if err := p.walk(strings.TrimPrefix(where+"."+key, "."), n[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range n {
			if err := p.walk(fmt.Sprintf("%s[%d]", where, i), item); err != nil {
				return err
			}
		}
	}
	return nil
}

// object checks what of an object becomes a pod, or a container, or opens a way
// into the cluster.
func (p policy) object(where string, object map[string]any) error {
	if _, isPod := object["containers"].([]any); isPod {
		var spec corev1.PodSpec
		if err := decode(where, object, &spec); err != nil {
			return err
		}
		return p.pod(where, &spec)
	}
	switch last := where[strings.LastIndexByte(where, '.')+1:]; last {
	case "autoscalerOptions": // of the container that KubeRay adds to the head
		var container corev1.Container
		options := maps.Clone(object)
		maps.DeleteFunc(options, func(key string, _ any) bool {
			return !slices.Contains([]string{"securityContext", "volumeMounts", "volumeDevices"}, key)
		})
		if err := decode(where, options, &container); err != nil {
			return err
		}
		if container.SecurityContext != nil {
			return p.container(where, &corev1.PodSpec{}, &container)
		}
	case "headService", "serveService":
		if spec, ok := object["spec"].(map[string]any); ok && spec["externalIPs"] != nil {
			return denied(where+".spec.externalIPs", "is set", "remove it: it takes over others' traffic")
		}
	}
	return nil
}

func decode(where string, object map[string]any, into any) error {
	encoded, err := json.Marshal(object)
	if err == nil {
		err = sigsjson.UnmarshalCaseSensitivePreserveInts(encoded, into)
	}
	if err != nil {
		return denied(where, "cannot be read: "+err.Error(), "write it as Kubernetes does")
	}
	return nil
}

func (p policy) pod(where string, spec *corev1.PodSpec) error {
	for _, rule := range []struct {
		broken      bool
		field, what string
	}{
		{spec.HostNetwork && !p.HostNetwork, "hostNetwork", "is true"},
		{spec.HostPID && !p.HostPID, "hostPID", "is true"},
		{spec.HostIPC && !p.HostIPC, "hostIPC", "is true"},
		{spec.NodeName != "", "nodeName", "is " + strconv.Quote(spec.NodeName)},
		{strings.HasPrefix(spec.PriorityClassName, "system-") && !slices.Contains(p.PriorityClasses, spec.PriorityClassName),
			"priorityClassName", "is " + strconv.Quote(spec.PriorityClassName)},
		{spec.PriorityClassName != "" && !p.listed(p.PriorityClasses, spec.PriorityClassName),
			"priorityClassName", "is " + strconv.Quote(spec.PriorityClassName)},
		{spec.Priority != nil, "priority", "is set"},
		{len(spec.EphemeralContainers) > 0, "ephemeralContainers", "is set"},
		{spec.RuntimeClassName != nil && !p.listed(p.RuntimeClasses, *spec.RuntimeClassName), "runtimeClassName", "is set to another than those listed"},
	} {
		if rule.broken {
			return denied(where+"."+rule.field, rule.what, "remove it")
		}
	}
	for field, account := range map[string]string{"serviceAccountName": spec.ServiceAccountName, "serviceAccount": spec.DeprecatedServiceAccount} {
		if account != "" && account != "default" && !p.listed(p.ServiceAccounts, account) {
			return denied(where+"."+field, "is "+strconv.Quote(account), "use one that the policy lists")
		}
	}
	for i, t := range spec.Tolerations {
		if !p.listed(p.Tolerations, t.Key) {
			return denied(fmt.Sprintf("%s.tolerations[%d].key", where, i), "is "+strconv.Quote(t.Key), "use one that the policy lists")
		}
	}
	for i := range spec.Volumes {
		if err := p.volume(fmt.Sprintf("%s.volumes[%d]", where, i), &spec.Volumes[i]); err != nil {
			return err
		}
	}
	if err := p.podSecurity(where+".securityContext", spec.SecurityContext); err != nil {
		return err
	}
	for _, list := range []struct {
		field      string
		containers []corev1.Container
	}{{"containers", spec.Containers}, {"initContainers", spec.InitContainers}} {
		for i := range list.containers {
			if err := p.container(fmt.Sprintf("%s.%s[%d]", where, list.field, i), spec, &list.containers[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p policy) podSecurity(where string, c *corev1.PodSecurityContext) error {
	if c == nil {
		return nil
	}
	for i, sysctl := range c.Sysctls {
		if !allows(p.sysctls(), sysctl.Name) {
			return denied(fmt.Sprintf("%s.sysctls[%d]", where, i), "is "+strconv.Quote(sysctl.Name), "remove it: it is not among the safe ones")
		}
	}
	return p.confined(where, c.SeccompProfile, c.AppArmorProfile, c.SELinuxOptions, c.WindowsOptions)
}

// confined refuses to take off what confines a process.
func (p policy) confined(where string, seccomp *corev1.SeccompProfile, armor *corev1.AppArmorProfile, selinux *corev1.SELinuxOptions, windows *corev1.WindowsSecurityContextOptions) error {
	switch {
	case seccomp != nil && seccomp.Type == corev1.SeccompProfileTypeUnconfined:
		return denied(where+".seccompProfile.type", "is Unconfined", "use RuntimeDefault")
	case armor != nil && armor.Type == corev1.AppArmorProfileTypeUnconfined:
		return denied(where+".appArmorProfile.type", "is Unconfined", "use RuntimeDefault")
	case selinux != nil && (selinux.User != "" || selinux.Role != "" ||
		!slices.Contains([]string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}, selinux.Type)):
		return denied(where+".seLinuxOptions", "changes user, role or type", "remove it")
	case windows != nil && windows.HostProcess != nil && *windows.HostProcess:
		return denied(where+".windowsOptions.hostProcess", "is true", "remove it")
	}
	return nil
}

func (p policy) container(where string, pod *corev1.PodSpec, c *corev1.Container) error {
	where += ".securityContext"
	s := c.SecurityContext
	if s == nil {
		s = &corev1.SecurityContext{}
	}
	if s.Privileged != nil && *s.Privileged && !p.Privileged {
		return denied(where+".privileged", "is true", "remove it")
	}
	if s.ProcMount != nil && *s.ProcMount != corev1.DefaultProcMount {
		return denied(where+".procMount", "is "+strconv.Quote(string(*s.ProcMount)), "remove it")
	}
	if s.Capabilities != nil {
		for _, capability := range s.Capabilities.Add {
			if !allows(p.capabilities(), strings.TrimPrefix(string(capability), "CAP_")) {
				return denied(where+".capabilities.add", "has "+strconv.Quote(string(capability)), "remove it")
			}
		}
	}
	if err := p.confined(where, s.SeccompProfile, s.AppArmorProfile, s.SELinuxOptions, s.WindowsOptions); err != nil {
		return err
	}
	if !p.restricted() {
		return nil
	}
	return restrict(where, pod.SecurityContext, s)
}

// restrict asks for what the restricted standard wants to be said.
func restrict(where string, pod *corev1.PodSecurityContext, s *corev1.SecurityContext) error {
	if pod == nil {
		pod = &corev1.PodSecurityContext{}
	}
	asRoot := func(user *int64) bool { return user != nil && *user == 0 }
	nonRoot, seccomp := pod.RunAsNonRoot, pod.SeccompProfile
	if s.RunAsNonRoot != nil {
		nonRoot = s.RunAsNonRoot
	}
	if s.SeccompProfile != nil {
		seccomp = s.SeccompProfile
	}
	switch {
	case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation:
		return denied(where+".allowPrivilegeEscalation", "is not false", "set it to false")
	case s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL"):
		return denied(where+".capabilities.drop", "does not have ALL", "drop ALL")
	case nonRoot == nil || !*nonRoot || asRoot(pod.RunAsUser) || asRoot(s.RunAsUser):
		return denied(where+".runAsNonRoot", "is not true, or the user is 0", "set it to true, here or for the pod")
	case seccomp == nil:
		return denied(where+".seccompProfile", "is missing", "set its type to RuntimeDefault, here or for the pod")
	}
	return nil
}

// hostPath is the kind of volume that is a directory of the node.
const hostPath = "hostPath"

func (p policy) volume(where string, v *corev1.Volume) error {
	source := reflect.ValueOf(v.VolumeSource)
	for i, kind := range volumeKinds() {
		if source.Field(i).IsNil() || kind == hostPath && p.mounts(v.HostPath.Path) {
			continue
		}
		if !allows(p.volumes(), kind) {
			return denied(where, "is of kind "+kind, "use another kind of volume")
		}
	}
	return nil
}

// mounts reports whether a directory of the node may be mounted.
func (p policy) mounts(directory string) bool {
	clean := path.Clean(directory)
	if clean != strings.TrimSuffix(directory, "/") && clean != directory {
		return false // it goes up somewhere
	}
	return slices.ContainsFunc(p.HostPaths, func(root string) bool {
		root = path.Clean(root)
		return root == "/" || clean == root || strings.HasPrefix(clean, root+"/")
	})
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
