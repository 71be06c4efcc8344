package podpolicy

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// Check holds every pod that a manifest, as JSON, describes against the policy:
// wherever an object has containers it is taken for a pod. No manifest describes
// none. The error wraps ErrDenied and has what, where, and what would be right.
func Check(rules workload.PodPolicy, manifest json.RawMessage) error {
	p := policy{rules}
	if p.unchecked() && rules.Requests != workload.RequestsRequired || len(manifest) == 0 {
		return nil
	}
	var tree any
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(manifest, &tree); err != nil {
		return denied("manifest", "cannot be read: "+err.Error(), "write it as JSON")
	}
	return p.walk("", tree, nil)
}

func denied(where, what, remedy string) error {
	return fmt.Errorf("%w by the queue's pod policy: %s: %s; %s", ErrDenied, where, what, remedy)
}

// walk looks at everything in a node; around is the object that the node is a
// field of.
func (p policy) walk(where string, node any, around map[string]any) error {
	switch n := node.(type) {
	case map[string]any:
		if err := p.object(where, n, around); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(n)) {
			if err := p.walk(strings.TrimPrefix(where+"."+key, "."), n[key], n); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range n {
			if err := p.walk(fmt.Sprintf("%s[%d]", where, i), item, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// object checks what of an object becomes a pod, or a container.
func (p policy) object(where string, object, around map[string]any) error {
	if _, isPod := object["containers"].([]any); isPod {
		return p.podOf(where, object, around)
	}
	if p.unchecked() {
		return nil
	}
	options, isMap := object["autoscalerOptions"].(map[string]any)
	if isMap || object["enableInTreeAutoscaling"] == true {
		return p.autoscaler(strings.TrimPrefix(where+".autoscalerOptions", "."), options, object)
	}
	return nil
}

// podOf checks a pod with the metadata beside its spec.
func (p policy) podOf(where string, object, around map[string]any) error {
	var spec corev1.PodSpec
	if err := decode(where, object, &spec); err != nil {
		return err
	}
	if p.Requests == workload.RequestsRequired && !Requests(&spec) {
		return denied(where, "none of its containers has requests or limits, and podPolicy.requests is required", "set resources.requests or resources.limits of a container")
	}
	if p.unchecked() {
		return nil
	}
	metadata, err := annotationsOf(where, around)
	if err != nil {
		return err
	}
	if err := p.pod(where, &spec); err != nil {
		return err
	}
	return p.standard(where, metadata, &spec)
}

// Requests reports whether a pod asks for any amount: itself, or one of its containers.
func Requests(spec *corev1.PodSpec) bool {
	asks := func(r corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			for _, amount := range list {
				if amount.Sign() > 0 {
					return true
				}
			}
		}
		return false
	}
	return spec.Resources != nil && asks(*spec.Resources) ||
		slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool { return asks(c.Resources) })
}

// annotationsOf reads what of a pod's metadata the standard looks at.
func annotationsOf(where string, around map[string]any) (*metav1.ObjectMeta, error) {
	var of struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if around["metadata"] != nil {
		if err := decode(strings.TrimSuffix(where, ".spec")+".metadata", map[string]any{"metadata": around["metadata"]}, &of); err != nil {
			return nil, err
		}
	}
	return &metav1.ObjectMeta{Annotations: of.Metadata.Annotations}, nil
}

// autoscaler checks the container that KubeRay adds to the head of an autoscaling
// cluster, in the head's pod.
func (p policy) autoscaler(where string, options, cluster map[string]any) error {
	options = maps.Clone(options)
	maps.DeleteFunc(options, func(key string, _ any) bool {
		return !slices.Contains([]string{"securityContext", "volumeMounts", "volumeDevices"}, key)
	})
	added := corev1.Container{}
	if err := decode(where, options, &added); err != nil {
		return err
	}
	added.Name = "autoscaler"
	if added.SecurityContext == nil && cluster["enableInTreeAutoscaling"] != true {
		return nil
	}
	var head struct {
		HeadGroupSpec struct {
			Template struct {
				Spec struct {
					SecurityContext *corev1.PodSecurityContext `json:"securityContext"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"headGroupSpec"`
	}
	if cluster["headGroupSpec"] != nil {
		if err := decode(strings.TrimSuffix(where, "autoscalerOptions")+"headGroupSpec", map[string]any{"headGroupSpec": cluster["headGroupSpec"]}, &head); err != nil {
			return err
		}
	}
	pod := &corev1.PodSpec{SecurityContext: head.HeadGroupSpec.Template.Spec.SecurityContext, Containers: []corev1.Container{added}}
	return p.standard(where, &metav1.ObjectMeta{}, pod)
}

func decode(where string, object map[string]any, into any) error {
	if err := kube.Decode("", object, into); err != nil {
		return denied(where, "cannot be read: "+err.Error(), "write it as Kubernetes does")
	}
	return nil
}

// pod checks what no standard speaks of: what would take the pod past its queue,
// or lend it the rights or the rank of others.
func (p policy) pod(where string, spec *corev1.PodSpec) error {
	for _, rule := range []struct {
		broken      bool
		field, what string
	}{
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
