package ray

import (
	"fmt"
	"maps"
	"slices"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/spec/fault"
)

func (j *jobSpec) check() error {
	spec, path := j.spec, j.path
	switch spec.SubmissionMode {
	case rayv1.K8sJobMode, rayv1.HTTPMode, rayv1.SidecarMode, rayv1.InteractiveMode:
	default:
		return refuse(path+".submissionMode", "is "+fault.Quote(string(spec.SubmissionMode)), "want K8sJobMode, HTTPMode, SidecarMode or InteractiveMode")
	}
	if len(spec.ClusterSelector) > 0 {
		j.verdict.refuse(path+".clusterSelector", "is set",
			"give the job a rayClusterSpec of its own: Muster cannot promise room in a cluster that it did not start for the job")
		if err := j.checkSelector(); err != nil {
			return err
		}
	} else if spec.RayClusterSpec == nil {
		return refuse(path+".rayClusterSpec", "is missing", "give the cluster that the job runs on")
	}
	for _, check := range []func() error{j.checkDeadlines, j.checkMode, j.checkDeletion, j.checkRuntimeEnv} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkSelector refuses what KubeRay refuses of a job on the cluster of another owner.
func (j *jobSpec) checkSelector() error {
	const cluster = "ray.io/cluster"
	switch where := j.path + ".clusterSelector"; {
	case j.spec.ClusterSelector[cluster] == "":
		return refuse(where, "has no "+cluster, "name the RayCluster in it")
	case j.spec.Suspend:
		return refuse(where, "is set together with suspend", "choose one of them")
	case j.spec.SubmissionMode == rayv1.SidecarMode:
		return refuse(where, "is set in SidecarMode", "use another submissionMode")
	case j.spec.BackoffLimit != nil && *j.spec.BackoffLimit > 0:
		return refuse(where, "is set together with backoffLimit", "choose one of them")
	}
	return nil
}

// checkRuntimeEnv refuses an environment that is no YAML.
func (j *jobSpec) checkRuntimeEnv() error {
	return checkNested(j.path+".runtimeEnvYAML", j.spec.RuntimeEnvYAML, "want an object in YAML")
}

// checkDeadlines refuses numbers with which KubeRay leaves the job in
// ValidationFailed for ever.
func (j *jobSpec) checkDeadlines() error {
	spec := j.spec
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
			return refuse(j.path+"."+number.field, fmt.Sprintf("is %d", *number.value), fmt.Sprintf("want %d or more", number.least))
		}
	}
	if spec.TTLSecondsAfterFinished > 0 && !spec.ShutdownAfterJobFinishes {
		return refuse(j.path+".ttlSecondsAfterFinished", fmt.Sprintf("is %d without shutdownAfterJobFinishes", spec.TTLSecondsAfterFinished),
			"set shutdownAfterJobFinishes, too")
	}
	return nil
}

// checkMode refuses what KubeRay refuses in one submission mode.
func (j *jobSpec) checkMode() error {
	spec := j.spec
	var head corev1.PodSpec
	var auth *rayv1.AuthOptions
	if spec.RayClusterSpec != nil {
		head, auth = spec.RayClusterSpec.HeadGroupSpec.Template.Spec, spec.RayClusterSpec.AuthOptions
	}
	sidecar := spec.SubmissionMode == rayv1.SidecarMode
	switch {
	case sidecar && spec.SubmitterPodTemplate != nil:
		return refuse(j.path+".submitterPodTemplate", "is set in SidecarMode", "remove it: the head's pod submits the job")
	case sidecar && spec.SubmitterConfig != nil:
		return refuse(j.path+".submitterConfig", "is set in SidecarMode", "remove it: the head's pod submits the job")
	case sidecar && head.RestartPolicy != "" && head.RestartPolicy != corev1.RestartPolicyNever:
		return refuse(j.path+".rayClusterSpec.headGroupSpec.template.spec.restartPolicy", "is "+fault.Quote(string(head.RestartPolicy))+" in SidecarMode",
			"want Never or nothing")
	case spec.SubmissionMode == rayv1.InteractiveMode && spec.BackoffLimit != nil && *spec.BackoffLimit > 0:
		return refuse(j.path+".backoffLimit", fmt.Sprintf("is %d in InteractiveMode", *spec.BackoffLimit), "remove it")
	case spec.SubmitterConfig != nil && spec.SubmitterConfig.BackoffLimit != nil && *spec.SubmitterConfig.BackoffLimit < 0:
		return refuse(j.path+".submitterConfig.backoffLimit", fmt.Sprintf("is %d", *spec.SubmitterConfig.BackoffLimit), "want zero or more")
	}
	if auth != nil && auth.EnableK8sTokenAuth != nil && *auth.EnableK8sTokenAuth {
		return refuse(j.path+".rayClusterSpec.authOptions.enableK8sTokenAuth", "is true", "remove it: KubeRay does not support it for a RayJob")
	}
	return nil
}

// checkDeletion refuses combinations that KubeRay refuses.
func (j *jobSpec) checkDeletion() error {
	strategy := j.spec.DeletionStrategy
	if strategy == nil {
		return nil
	}
	where := j.path + ".deletionStrategy"
	if !j.operator.enabled(gateDeletionPolicy) {
		return refuse(where, "is set, and the operator's feature gate "+gateDeletionPolicy+" is off", "use shutdownAfterJobFinishes, or turn the gate on")
	}
	rules, legacy := len(strategy.DeletionRules) > 0, strategy.OnSuccess != nil || strategy.OnFailure != nil
	switch {
	case rules && j.spec.ShutdownAfterJobFinishes:
		return refuse(where+".deletionRules", "is set together with shutdownAfterJobFinishes", "choose one of them")
	case rules && legacy:
		return refuse(where+".deletionRules", "is set together with onSuccess or onFailure", "choose one of them")
	case !rules && (strategy.OnSuccess == nil || strategy.OnFailure == nil):
		return refuse(where, "is incomplete", "want deletionRules, or both onSuccess and onFailure")
	case !rules:
		return j.checkPolicies(where)
	}
	return j.checkRules(where + ".deletionRules")
}

// checkPolicies is about onSuccess and onFailure.
func (j *jobSpec) checkPolicies(where string) error {
	for field, policy := range map[string]*rayv1.DeletionPolicyType{
		".onSuccess.policy": j.spec.DeletionStrategy.OnSuccess.Policy, ".onFailure.policy": j.spec.DeletionStrategy.OnFailure.Policy,
	} {
		switch {
		case policy == nil:
			return refuse(where+field, "is missing", "want DeleteCluster, DeleteWorkers, DeleteSelf or DeleteNone")
		case *policy == rayv1.DeleteNone && j.spec.ShutdownAfterJobFinishes:
			return refuse(where+field, "is DeleteNone together with shutdownAfterJobFinishes", "choose one of them")
		}
		if err := j.checkPolicy(where+field, *policy); err != nil {
			return err
		}
	}
	return nil
}

func (j *jobSpec) checkPolicy(where string, policy rayv1.DeletionPolicyType) error {
	borrowed := len(j.spec.ClusterSelector) > 0
	switch {
	case policy == rayv1.DeleteWorkers && j.spec.RayClusterSpec != nil && autoscaled(j.spec.RayClusterSpec):
		return refuse(where, "is DeleteWorkers with enableInTreeAutoscaling", "use DeleteCluster")
	case borrowed && (policy == rayv1.DeleteWorkers || policy == rayv1.DeleteCluster):
		return refuse(where, "is "+string(policy)+" with clusterSelector", "use DeleteSelf or DeleteNone")
	}
	return nil
}

// checkRules is about deletionRules: each is for one state, there once, and what
// deletes more does not come before what deletes less.
func (j *jobSpec) checkRules(where string) error {
	least := []rayv1.DeletionPolicyType{rayv1.DeleteWorkers, rayv1.DeleteCluster, rayv1.DeleteSelf}
	after := map[string]map[rayv1.DeletionPolicyType]int32{}
	for i, rule := range j.spec.DeletionStrategy.DeletionRules {
		path := fmt.Sprintf("%s[%d]", where, i)
		if (rule.Condition.JobStatus == nil) == (rule.Condition.JobDeploymentStatus == nil) {
			return refuse(path+".condition", "is empty", "want one of jobStatus and jobDeploymentStatus")
		}
		if rule.Condition.TTLSeconds < 0 {
			return refuse(path+".condition.ttlSeconds", fmt.Sprintf("is %d", rule.Condition.TTLSeconds), "want zero or more")
		}
		if err := j.checkPolicy(path+".policy", rule.Policy); err != nil {
			return err
		}
		state := "jobStatus "
		if rule.Condition.JobStatus != nil {
			state += string(*rule.Condition.JobStatus)
		} else {
			state = "jobDeploymentStatus " + string(*rule.Condition.JobDeploymentStatus)
		}
		if after[state] == nil {
			after[state] = map[rayv1.DeletionPolicyType]int32{}
		}
		if _, twice := after[state][rule.Policy]; twice {
			return refuse(path, "is a second rule of "+string(rule.Policy)+" for "+fault.Clip(state), "keep one")
		}
		after[state][rule.Policy] = rule.Condition.TTLSeconds
	}
	for _, state := range slices.Sorted(maps.Keys(after)) {
		before := int32(0)
		for _, policy := range least {
			seconds, given := after[state][policy]
			if given && seconds < before {
				return refuse(where, fmt.Sprintf("has %s after %d s for %s, sooner than what deletes less", policy, seconds, fault.Clip(state)),
					"give it the same or more ttlSeconds")
			}
			before = max(before, seconds)
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
