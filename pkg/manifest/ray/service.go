package ray

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"

	"muster.dev/muster/pkg/spec/fault"
)

func (r *reading) service() ([]member, error) {
	var service rayv1.RayService
	if err := decode(r.tree, &service); err != nil {
		return nil, err
	}
	if err := r.checkService(&service); err != nil {
		return nil, err
	}
	elsewhere := r.managedElsewhere("spec", service.Spec.ManagedBy)
	specTree, _ := r.tree["spec"].(map[string]any)
	clusterTree, _ := specTree["rayClusterConfig"].(map[string]any)
	c := clusterSpec{reading: r, path: "spec.rayClusterConfig", spec: &service.Spec.RayClusterSpec, annotations: service.Annotations}
	members, err := c.read(clusterTree)
	if err != nil {
		return nil, err
	}
	if elsewhere {
		nothingCreated(members)
	}
	return members, checkDashboard(c.path, &service.Spec.RayClusterSpec)
}

// checkService refuses what KubeRay refuses (ValidateRayServiceSpec), and
// upgrades that need room for a second cluster.
func (r *reading) checkService(service *rayv1.RayService) error {
	spec := &service.Spec
	config := "spec.rayClusterConfig"
	if auth := spec.RayClusterSpec.AuthOptions; auth != nil && auth.EnableK8sTokenAuth != nil && *auth.EnableK8sTokenAuth {
		return refuse(config+".authOptions.enableK8sTokenAuth", "is true", "remove it: KubeRay does not support it for a RayService")
	}
	if head := spec.RayClusterSpec.HeadGroupSpec.HeadService; head != nil && head.Name != "" {
		return refuse(config+".headGroupSpec.headService.metadata.name", "is "+fault.Quote(head.Name), "remove it: KubeRay names the service of a RayService")
	}
	if delay := spec.RayClusterDeletionDelaySeconds; delay != nil && *delay < 0 {
		return refuse("spec.rayClusterDeletionDelaySeconds", fmt.Sprintf("is %d", *delay), "want zero or more")
	}
	if err := checkNested("spec.serveConfigV2", spec.ServeConfigV2, "want Serve's configuration in YAML"); err != nil {
		return err
	}
	if err := checkInitializing(service.Annotations); err != nil {
		return err
	}
	return r.checkServiceUpgrade(spec.UpgradeStrategy)
}

// checkInitializing holds the annotation against what KubeRay reads.
func checkInitializing(annotations map[string]string) error {
	const key = "ray.io/initializing-timeout"
	text := annotations[key]
	if text == "" {
		return nil
	}
	seconds, err := strconv.Atoi(text)
	if period, faulty := time.ParseDuration(text); faulty == nil {
		seconds, err = int(period.Nanoseconds()), nil
	}
	if err != nil || seconds <= 0 {
		return refuse("metadata.annotations["+key+"]", "is "+fault.Quote(text), `want a time such as "30m", or a number of seconds`)
	}
	return nil
}

// checkServiceUpgrade: an upgrade by a second cluster beside the first would need
// its room at a moment that was not admitted.
func (r *reading) checkServiceUpgrade(strategy *rayv1.RayServiceUpgradeStrategy) error {
	if strategy == nil || strategy.Type == nil {
		return nil // stamped None
	}
	const where = "spec.upgradeStrategy.type"
	switch *strategy.Type {
	case rayv1.RayServiceUpgradeNone:
		return nil
	case rayv1.RayServiceNewCluster, rayv1.RayServiceNewClusterWithIncrementalUpgrade:
		r.verdict.refuse(where, "is "+fault.Quote(string(*strategy.Type))+", with which KubeRay starts a second cluster beside the first",
			"remove it, or set it to None; to upgrade, submit the new version under another name and cancel the old one when the new one runs")
		return nil
	}
	return refuse(where, "is "+fault.Quote(string(*strategy.Type)), "want None")
}

// isCronJob reports whether a manifest, whatever is wrong with it, is that of a
// RayCronJob.
func isCronJob(data []byte) bool {
	tree, err := parse(data)
	version, _ := tree["apiVersion"].(string)
	return err == nil && tree["kind"] == RayCronJob && strings.HasPrefix(version, "ray.io/")
}

func cronJobRefused() error {
	return refuse("kind", `is "RayCronJob", whose RayJobs KubeRay would create itself, past the queue`,
		"submit spec.jobTemplate as a RayJob at each of its times, for instance with `muster submit` in a CronJob")
}

// cronJob predicts one run.
func (r *reading) cronJob() ([]member, error) {
	var cron rayv1.RayCronJob
	if err := decode(r.tree, &cron); err != nil {
		return nil, err
	}
	if cron.Spec.Schedule == "" {
		return nil, refuse("spec.schedule", "is empty", `want a schedule such as "0 3 * * *"`)
	}
	r.verdict.note(cronJobRefused())
	specTree, _ := r.tree["spec"].(map[string]any)
	jobTree, _ := specTree["jobTemplate"].(map[string]any)
	j := jobSpec{reading: r, path: "spec.jobTemplate", spec: &cron.Spec.JobTemplate}
	return j.read(jobTree)
}
