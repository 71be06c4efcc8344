package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/spec/fault"
)

// BadPod checks the names in the spec of a pod: of ports, variables and volumes, and of
// the objects that it refers to. It returns the path of the first fault within the spec,
// what is there and the reason.
//
// It is not for names of containers, keys of selectors and resources, which their
// readers check.
func BadPod(spec *corev1.PodSpec) (where, what, why string) {
	var f faults
	f.optional("hostname", spec.Hostname, validation.IsDNS1123Label)
	f.optional("subdomain", spec.Subdomain, validation.IsDNS1123Label)
	f.optional("serviceAccount", spec.DeprecatedServiceAccount, validation.IsDNS1123Subdomain)
	f.optional("priorityClassName", spec.PriorityClassName, validation.IsDNS1123Subdomain)
	if spec.RuntimeClassName != nil {
		f.want("runtimeClassName", *spec.RuntimeClassName, validation.IsDNS1123Subdomain)
	}
	for i, secret := range spec.ImagePullSecrets {
		f.object(fmt.Sprintf("imagePullSecrets[%d].name", i), secret.Name)
	}
	for i, gate := range spec.ReadinessGates {
		f.want(fmt.Sprintf("readinessGates[%d].conditionType", i), string(gate.ConditionType), validation.IsQualifiedName)
	}
	for i, t := range spec.Tolerations {
		f.optional(fmt.Sprintf("tolerations[%d].key", i), t.Key, validation.IsQualifiedName)
		f.optional(fmt.Sprintf("tolerations[%d].value", i), t.Value, validation.IsValidLabelValue)
	}
	f.volumes(spec.Volumes)
	for i := range spec.InitContainers {
		f.container(fmt.Sprintf("initContainers[%d]", i), &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		f.container(fmt.Sprintf("containers[%d]", i), &spec.Containers[i])
	}
	return f.where, f.what, f.why
}

// faults keeps the first fault of a pod.
type faults struct{ where, what, why string }

// want records the fault of an invalid name.
func (f *faults) want(where, name string, check func(string) []string) {
	if why := first(check(name)); why != "" && f.why == "" {
		f.where, f.what, f.why = where, "is "+fault.Quote(name), why
	}
}

// optional is want for a name that may be missing.
func (f *faults) optional(where, name string, check func(string) []string) {
	if name != "" {
		f.want(where, name, check)
	}
}

// object checks a reference to an object. The API server accepts one without a name.
func (f *faults) object(where, name string) { f.optional(where, name, validation.IsDNS1123Subdomain) }

// longestVariable bounds the name of a variable. The API server has no bound.
const longestVariable = 1024

func variable(name string) []string {
	if len(name) > longestVariable {
		return []string{validation.MaxLenError(longestVariable)}
	}
	return validation.IsRelaxedEnvVarName(name)
}

func (f *faults) container(where string, c *corev1.Container) {
	for i, port := range c.Ports {
		f.optional(fmt.Sprintf("%s.ports[%d].name", where, i), port.Name, validation.IsValidPortName)
	}
	for i, v := range c.Env {
		at := fmt.Sprintf("%s.env[%d]", where, i)
		f.want(at+".name", v.Name, variable)
		if v.ValueFrom == nil {
			continue
		}
		if key := v.ValueFrom.SecretKeyRef; key != nil {
			f.object(at+".valueFrom.secretKeyRef.name", key.Name)
			f.want(at+".valueFrom.secretKeyRef.key", key.Key, validation.IsConfigMapKey)
		}
		if key := v.ValueFrom.ConfigMapKeyRef; key != nil {
			f.object(at+".valueFrom.configMapKeyRef.name", key.Name)
			f.want(at+".valueFrom.configMapKeyRef.key", key.Key, validation.IsConfigMapKey)
		}
	}
	for i, from := range c.EnvFrom {
		at := fmt.Sprintf("%s.envFrom[%d]", where, i)
		f.optional(at+".prefix", from.Prefix, variable)
		if from.ConfigMapRef != nil {
			f.object(at+".configMapRef.name", from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			f.object(at+".secretRef.name", from.SecretRef.Name)
		}
	}
	for i, mount := range c.VolumeMounts {
		f.want(fmt.Sprintf("%s.volumeMounts[%d].name", where, i), mount.Name, validation.IsDNS1123Label)
	}
	for i, device := range c.VolumeDevices {
		f.want(fmt.Sprintf("%s.volumeDevices[%d].name", where, i), device.Name, validation.IsDNS1123Label)
	}
}

func (f *faults) volumes(volumes []corev1.Volume) {
	seen := map[string]bool{}
	for i := range volumes {
		v, at := &volumes[i], fmt.Sprintf("volumes[%d]", i)
		f.want(at+".name", v.Name, validation.IsDNS1123Label)
		if seen[v.Name] && f.why == "" {
			f.where, f.what, f.why = at+".name", fault.Quote(v.Name)+" is the name of another volume", "want a name of its own"
		}
		seen[v.Name] = true
		if v.PersistentVolumeClaim != nil {
			f.want(at+".persistentVolumeClaim.claimName", v.PersistentVolumeClaim.ClaimName, validation.IsDNS1123Subdomain)
		}
		if v.ConfigMap != nil {
			f.object(at+".configMap.name", v.ConfigMap.Name)
			f.keys(at+".configMap", v.ConfigMap.Items)
		}
		if v.Secret != nil {
			f.object(at+".secret.secretName", v.Secret.SecretName)
			f.keys(at+".secret", v.Secret.Items)
		}
		if v.Projected != nil {
			f.projected(at+".projected", v.Projected.Sources)
		}
	}
}

func (f *faults) projected(where string, sources []corev1.VolumeProjection) {
	for i, source := range sources {
		at := fmt.Sprintf("%s.sources[%d]", where, i)
		if source.ConfigMap != nil {
			f.object(at+".configMap.name", source.ConfigMap.Name)
			f.keys(at+".configMap", source.ConfigMap.Items)
		}
		if source.Secret != nil {
			f.object(at+".secret.name", source.Secret.Name)
			f.keys(at+".secret", source.Secret.Items)
		}
	}
}

func (f *faults) keys(where string, items []corev1.KeyToPath) {
	for i, item := range items {
		f.want(fmt.Sprintf("%s.items[%d].key", where, i), item.Key, validation.IsConfigMapKey)
	}
}
