package ray

import (
	"cmp"
	"maps"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

func (r *reading) job() ([]member, error) {
	var job rayv1.RayJob
	if err := decode(r.tree, &job); err != nil {
		return nil, err
	}
	tree, _ := r.tree["spec"].(map[string]any)
	j := jobSpec{reading: r, path: "spec", spec: &job.Spec, annotations: job.Annotations}
	return j.read(tree)
}

// jobSpec is the spec of a RayJob, of its own or in a RayCronJob.
type jobSpec struct {
	*reading
	path        string
	spec        *rayv1.RayJobSpec
	annotations map[string]string
}

func (j *jobSpec) read(tree map[string]any) ([]member, error) {
	if j.spec.SubmissionMode == "" {
		j.spec.SubmissionMode = rayv1.K8sJobMode
	}
	if err := j.check(); err != nil {
		return nil, err
	}
	var members []member
	if len(j.spec.ClusterSelector) == 0 {
		clusterTree, _ := tree["rayClusterSpec"].(map[string]any)
		c := clusterSpec{
			reading: j.reading, path: j.path + ".rayClusterSpec", spec: j.spec.RayClusterSpec, annotations: j.annotations,
			sidecarSubmitter: j.spec.SubmissionMode == rayv1.SidecarMode, reserved: []string{SubmitterGroup},
		}
		var err error
		if members, err = c.read(clusterTree); err != nil {
			return nil, err
		}
		if err := checkDashboard(c.path, j.spec.RayClusterSpec); err != nil {
			return nil, err
		}
	}
	if j.spec.SubmissionMode == rayv1.K8sJobMode {
		submitter, err := j.submitter()
		if err != nil {
			return nil, err
		}
		members = append(members, submitter)
	}
	// Without a cluster there is nothing to submit to.
	if j.waits() || members != nil && members[0].created == 0 {
		nothingCreated(members)
	}
	return members, nil
}

// waits refuses what takes the start of the job out of Muster's hands, and
// reports whether it keeps KubeRay from creating pods.
func (j *jobSpec) waits() bool {
	if j.spec.Suspend {
		j.verdict.refuse(j.path+".suspend", "is true", "remove it: the queue holds the workload back until it can start")
	}
	return j.managedElsewhere(j.path, j.spec.ManagedBy) || j.spec.Suspend
}

// submitter is the pod that submits the job once the cluster is ready; its
// retries come one after the other.
func (j *jobSpec) submitter() (member, error) {
	path := j.path + ".submitterPodTemplate"
	var image string // of the cluster that the job finds, if it has none of its own
	if j.spec.RayClusterSpec != nil {
		image = imageOf(j.spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers)
	}
	pod := corev1.PodSpec{Containers: []corev1.Container{submitterContainer(cmp.Or(image, "ray"))}}
	submitter := member{
		set: workload.PodSet{Name: SubmitterGroup, Role: workload.RoleSubmitter, Count: 1}, path: path, spec: &pod, hosts: 1, created: 1,
		labels: map[string]string{kube.PodSetLabel: SubmitterGroup},
	}
	if template := j.spec.SubmitterPodTemplate; template != nil {
		pod = template.Spec
		if pod.RestartPolicy != corev1.RestartPolicyNever && pod.RestartPolicy != corev1.RestartPolicyOnFailure {
			return member{}, refuse(path+".spec.restartPolicy", "is "+fault.Quote(string(pod.RestartPolicy)), "want Never or OnFailure")
		}
		maps.Copy(submitter.labels, template.Labels)
		submitter.annotations = template.Annotations
	}
	if err := refuseAmongPods(path+".spec", &pod); err != nil { // it is pinned before the others exist
		j.verdict.note(err)
	}
	return submitter, submitter.readTemplate(j.reading)
}
