package ray

import (
	"encoding/json"
	"fmt"
	"maps"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/workload"
)

func readJob(tree map[string]any, manifest json.RawMessage) ([]workload.PodSet, error) {
	var job rayv1.RayJob
	if err := decode(manifest, &job); err != nil {
		return nil, err
	}
	spec := &job.Spec
	if spec.SubmissionMode == "" {
		spec.SubmissionMode = rayv1.K8sJobMode
	}
	if err := checkJob(spec); err != nil {
		return nil, err
	}
	jobTree, _ := tree["spec"].(map[string]any)
	clusterTree, _ := jobTree["rayClusterSpec"].(map[string]any)
	c := clusterSpec{
		path: "spec.rayClusterSpec", spec: spec.RayClusterSpec, annotations: job.Annotations,
		sidecarSubmitter: spec.SubmissionMode == rayv1.SidecarMode, reserved: []string{SubmitterGroup},
	}
	members, err := c.read(clusterTree)
	if err != nil {
		return nil, err
	}
	if err := checkDashboard(c.path, spec.RayClusterSpec); err != nil {
		return nil, err
	}
	if spec.SubmissionMode != rayv1.K8sJobMode {
		return bindGang(members)
	}
	submitter, err := submitterSet(spec)
	if err != nil {
		return nil, err
	}
	return bindGang(append(members, submitter))
}

func checkJob(spec *rayv1.RayJobSpec) error {
	switch spec.SubmissionMode {
	case rayv1.K8sJobMode, rayv1.HTTPMode, rayv1.SidecarMode, rayv1.InteractiveMode:
	default:
		return refuse("spec.submissionMode", "is "+quote(string(spec.SubmissionMode)), "want K8sJobMode, HTTPMode, SidecarMode or InteractiveMode")
	}
	switch {
	case len(spec.ClusterSelector) > 0:
		return refuse("spec.clusterSelector", "is set",
			"give the job a rayClusterSpec of its own: Muster cannot promise room in a cluster that it did not start for the job")
	case spec.Suspend:
		return refuse("spec.suspend", "is true", "remove it: the queue holds the workload back until it can start")
	case spec.RayClusterSpec == nil:
		return refuse("spec.rayClusterSpec", "is missing", "give the cluster that the job runs on")
	}
	if err := checkManager("spec", spec.ManagedBy); err != nil {
		return err
	}
	if err := checkDeadlines(spec); err != nil {
		return err
	}
	if err := checkMode(spec); err != nil {
		return err
	}
	return checkDeletion(spec)
}

// checkDeadlines refuses numbers with which KubeRay leaves the job in
// ValidationFailed for ever.
func checkDeadlines(spec *rayv1.RayJobSpec) error {
	for _, number := range []struct {
		field string
		value *int32
		least int32
	}{
		{"backoffLimit", spec.BackoffLimit, 0},
		{"activeDeadlineSeconds", spec.ActiveDeadlineSeconds, 1},
		{"preRunningDeadlineSeconds", spec.PreRunningDeadlineSeconds, 1},
		{"ttlSecondsAfterFinished", &spec.TTLSecondsAfterFinished, 0},
	} {
		if number.value != nil && *number.value < number.least {
			return refuse("spec."+number.field, fmt.Sprintf("is %d", *number.value), fmt.Sprintf("want %d or more", number.least))
		}
	}
	if spec.TTLSecondsAfterFinished > 0 && !spec.ShutdownAfterJobFinishes {
		return refuse("spec.ttlSecondsAfterFinished", fmt.Sprintf("is %d without shutdownAfterJobFinishes", spec.TTLSecondsAfterFinished),
			"set shutdownAfterJobFinishes, too")
	}
	return nil
}

// checkMode refuses what KubeRay refuses in one submission mode.
func checkMode(spec *rayv1.RayJobSpec) error {
	head := spec.RayClusterSpec.HeadGroupSpec.Template.Spec
	sidecar := spec.SubmissionMode == rayv1.SidecarMode
	switch {
	case sidecar && spec.SubmitterPodTemplate != nil:
		return refuse("spec.submitterPodTemplate", "is set in SidecarMode", "remove it: the head's pod submits the job")
	case sidecar && spec.SubmitterConfig != nil:
		return refuse("spec.submitterConfig", "is set in SidecarMode", "remove it: the head's pod submits the job")
	case sidecar && head.RestartPolicy != "" && head.RestartPolicy != corev1.RestartPolicyNever:
		return refuse("spec.rayClusterSpec.headGroupSpec.template.spec.restartPolicy", "is "+quote(string(head.RestartPolicy))+" in SidecarMode",
			"want Never or nothing")
	case spec.SubmissionMode == rayv1.InteractiveMode && spec.BackoffLimit != nil && *spec.BackoffLimit > 0:
		return refuse("spec.backoffLimit", fmt.Sprintf("is %d in InteractiveMode", *spec.BackoffLimit), "remove it")
	case spec.SubmitterConfig != nil && spec.SubmitterConfig.BackoffLimit != nil && *spec.SubmitterConfig.BackoffLimit < 0:
		return refuse("spec.submitterConfig.backoffLimit", fmt.Sprintf("is %d", *spec.SubmitterConfig.BackoffLimit), "want zero or more")
	}
	if auth := spec.RayClusterSpec.AuthOptions; auth != nil && auth.EnableK8sTokenAuth != nil && *auth.EnableK8sTokenAuth {
		return refuse("spec.rayClusterSpec.authOptions.enableK8sTokenAuth", "is true", "remove it: KubeRay does not support it for a RayJob")
	}
	return nil
}

// checkDeletion refuses combinations that KubeRay refuses.
func checkDeletion(spec *rayv1.RayJobSpec) error {
	strategy := spec.DeletionStrategy
	if strategy == nil {
		return nil
	}
	const where = "spec.deletionStrategy"
	rules, legacy := len(strategy.DeletionRules) > 0, strategy.OnSuccess != nil || strategy.OnFailure != nil
	switch {
	case rules && spec.ShutdownAfterJobFinishes:
		return refuse(where+".deletionRules", "is set together with shutdownAfterJobFinishes", "choose one of them")
	case rules && legacy:
		return refuse(where+".deletionRules", "is set together with onSuccess or onFailure", "choose one of them")
	case !rules && (strategy.OnSuccess == nil || strategy.OnFailure == nil):
		return refuse(where, "is incomplete", "want deletionRules, or both onSuccess and onFailure")
	}
	for i, rule := range strategy.DeletionRules {
		path := fmt.Sprintf("%s.deletionRules[%d]", where, i)
		if (rule.Condition.JobStatus == nil) == (rule.Condition.JobDeploymentStatus == nil) {
			return refuse(path+".condition", "does not say when", "want one of jobStatus and jobDeploymentStatus")
		}
		if rule.Condition.TTLSeconds < 0 {
			return refuse(path+".condition.ttlSeconds", fmt.Sprintf("is %d", rule.Condition.TTLSeconds), "want zero or more")
		}
		if rule.Policy == rayv1.DeleteWorkers && autoscaled(spec.RayClusterSpec) {
			return refuse(path+".policy", "is DeleteWorkers with enableInTreeAutoscaling", "use DeleteCluster")
		}
	}
	return nil
}

// checkDashboard refuses a head whose ports leave out the dashboard: KubeRay
// would look for its port for ever.
func checkDashboard(path string, spec *rayv1.RayClusterSpec) error {
	ports := spec.HeadGroupSpec.Template.Spec.Containers[0].Ports
	for _, port := range ports {
		if port.Name == "dashboard" {
			return nil
		}
	}
	if len(ports) == 0 {
		return nil // KubeRay's defaults
	}
	return refuse(path+".headGroupSpec.template.spec.containers[0].ports", `lists no port named "dashboard"`,
		"add it (8265 as a rule), or list no ports: KubeRay submits the job there")
}

// submitterSet is the pod that submits the job once the cluster is ready; its
// retries come one after the other.
func submitterSet(spec *rayv1.RayJobSpec) (member, error) {
	const path = "spec.submitterPodTemplate"
	pod := corev1.PodSpec{Containers: []corev1.Container{submitterContainer(spec.RayClusterSpec)}}
	if spec.SubmitterPodTemplate != nil {
		pod = spec.SubmitterPodTemplate.Spec
		if pod.RestartPolicy != corev1.RestartPolicyNever && pod.RestartPolicy != corev1.RestartPolicyOnFailure {
			return member{}, refuse(path+".spec.restartPolicy", "is "+quote(string(pod.RestartPolicy)), "want Never or OnFailure")
		}
	}
	submitter := member{
		set: workload.PodSet{Name: SubmitterGroup, Role: workload.RoleSubmitter, Count: 1}, path: path, spec: &pod, hosts: 1,
		labels: map[string]string{kube.PodSetLabel: SubmitterGroup},
	}
	if spec.SubmitterPodTemplate != nil {
		maps.Copy(submitter.labels, spec.SubmitterPodTemplate.Labels)
		submitter.annotations = spec.SubmitterPodTemplate.Annotations
	}
	if err := refuseAmongPods(path+".spec", &pod); err != nil { // it is pinned before the others exist
		return member{}, err
	}
	return submitter, submitter.readTemplate()
}
