package ray

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// job stamps the spec of a RayJob.
func (s StampInput) job(spec map[string]any, size string) error {
	cluster, err := child(spec, "rayClusterSpec")
	if err != nil {
		return err
	}
	if err := s.cluster(cluster, size); err != nil {
		return err
	}
	if mode, _ := spec["submissionMode"].(string); mode != "" && mode != string(rayv1.K8sJobMode) {
		return nil
	}
	return s.submitter(spec, cluster)
}

// submitter pins the pod that KubeRay creates last. It has no gate: nothing could
// lift it before KubeRay gives the job up.
func (s StampInput) submitter(spec, cluster map[string]any) error {
	i := slices.IndexFunc(s.Placements, func(p workload.Placement) bool { return p.PodSet == SubmitterGroup })
	if i < 0 && !s.Unplaced {
		return fmt.Errorf("no placement for pod set %q", SubmitterGroup)
	}
	template, given := spec["submitterPodTemplate"].(map[string]any)
	if !given {
		var err error
		if template, err = defaultSubmitter(cluster); err != nil {
			return err
		}
		spec["submitterPodTemplate"] = template
	}
	pod, err := s.template(template, SubmitterGroup)
	if err != nil {
		return err
	}
	if s.Trusted || s.Unplaced {
		return nil
	}
	selector, err := child(pod, "nodeSelector")
	if err != nil {
		return err
	}
	selector[kube.HostnameLabel] = s.Placements[i].Hostname
	if s.Placements[i].Hostname == "" {
		selector[kube.HostnameLabel] = s.Placements[i].Node
	}
	return nil
}

// defaultSubmitter is the template that KubeRay would use, as JSON. The
// container has no command, so that KubeRay fills it in.
func defaultSubmitter(cluster map[string]any) (map[string]any, error) {
	var typed rayv1.RayClusterSpec
	if err := kube.Decode("", cluster, &typed); err != nil {
		return nil, err
	}
	template := map[string]any{}
	encoded, err := json.Marshal(corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{submitterContainer(imageOf(typed.HeadGroupSpec.Template.Spec.Containers))}, RestartPolicy: corev1.RestartPolicyNever,
	}})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(encoded, &template); err != nil {
		return nil, err
	}
	maps.DeleteFunc(template, func(key string, _ any) bool { return key == "metadata" })
	return template, nil
}
