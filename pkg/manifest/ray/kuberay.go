package ray

import (
	"fmt"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"muster.dev/muster/pkg/spec/fault"
)

// checkAsKubeRay refuses clusters that KubeRay's own validation refuses
// (ValidateRayClusterSpec). KubeRay does it after the object was created: it
// then makes no pod, reports that in an event, and the gang would hold its nodes.
func (c *clusterSpec) checkAsKubeRay() error {
	if err := c.checkGroupParams(c.path+".headGroupSpec", c.spec.HeadGroupSpec.RayStartParams,
		c.spec.HeadGroupSpec.Resources, c.spec.HeadGroupSpec.Labels); err != nil {
		return err
	}
	for i := range c.spec.WorkerGroupSpecs {
		g := &c.spec.WorkerGroupSpecs[i]
		if err := c.checkGroupParams(c.groupPath(i), g.RayStartParams, g.Resources, g.Labels); err != nil {
			return err
		}
	}
	if len(c.spec.HeadGroupSpec.Template.Spec.Containers) == 0 {
		return refuse(c.path+".headGroupSpec.template.spec.containers", "is empty", "want at least one container; in a pod of Ray the first is Ray's")
	}
	for _, check := range []func() error{c.checkAutoscaler, c.checkRedis, c.checkAuth, c.checkUpgrade} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *clusterSpec) checkGroupParams(where string, params, resources, labels map[string]string) error {
	if _, set := params["labels"]; set {
		return refuse(where+".rayStartParams.labels", "is set", "use the group's own field labels")
	}
	for _, param := range []string{"num-cpus", "num-gpus", "memory", "resources"} {
		if params[param] != "" && len(resources) > 0 {
			return refuse(where+".resources", "is set together with rayStartParams."+param, "choose one of them")
		}
	}
	for key, value := range labels {
		if strings.HasPrefix(key, "muster.dev/") {
			c.verdict.refuse(where+".labels", "has "+fault.Quote(key), "remove it: Muster sets the labels of its own domain")
		}
		if err := checkLabel(where+".labels", key, value); err != nil {
			return err
		}
	}
	return nil
}

const autoscalerV2 = "RAY_enable_autoscaler_v2"

func (c *clusterSpec) checkAutoscaler() error {
	options := c.spec.AutoscalerOptions
	v2 := options != nil && options.Version != nil && *options.Version == rayv1.AutoscalerVersionV2
	env, set := c.headEnv(autoscalerV2)
	asked := env.Value == "1" || env.Value == "true"
	head := c.path + ".headGroupSpec.template.spec"
	switch {
	case !autoscaled(c.spec) && asked:
		return refuse(head+".containers[0].env", autoscalerV2+" is "+fault.Quote(env.Value)+" without enableInTreeAutoscaling", "set that, too")
	case autoscaled(c.spec) && options != nil && options.Version != nil && set:
		return refuse(head+".containers[0].env", "has "+autoscalerV2+" beside autoscalerOptions.version", "use the latter alone")
	case options != nil && options.IdleTimeoutSeconds != nil && *options.IdleTimeoutSeconds < 0:
		return refuse(c.path+".autoscalerOptions.idleTimeoutSeconds", fmt.Sprintf("is %d", *options.IdleTimeoutSeconds), "want zero or more")
	case autoscaled(c.spec) && v2 && restarts(c.spec.HeadGroupSpec.Template.Spec):
		return refuse(head+".restartPolicy", "is not Never with autoscaler v2", "want Never or nothing")
	}
	for i := range c.spec.WorkerGroupSpecs {
		g, where := &c.spec.WorkerGroupSpecs[i], c.groupPath(i)
		switch {
		case suspended(g) && !c.operator.enabled(gateDeletionPolicy):
			return refuse(where+".suspend", "is true, and the operator's feature gate "+gateDeletionPolicy+" is off", "remove the group, or turn the gate on")
		case autoscaled(c.spec) && suspended(g):
			return refuse(where+".suspend", "is true with enableInTreeAutoscaling", "remove the group")
		case autoscaled(c.spec) && v2 && restarts(g.Template.Spec):
			return refuse(where+".template.spec.restartPolicy", "is not Never with autoscaler v2", "want Never or nothing")
		case g.IdleTimeoutSeconds != nil && *g.IdleTimeoutSeconds < 0:
			return refuse(where+".idleTimeoutSeconds", fmt.Sprintf("is %d", *g.IdleTimeoutSeconds), "want zero or more")
		case g.IdleTimeoutSeconds != nil && !v2 && !asked:
			return refuse(where+".idleTimeoutSeconds", "is set without autoscaler v2", "set autoscalerOptions.version to v2")
		}
	}
	return nil
}

func suspended(g *rayv1.WorkerGroupSpec) bool { return g.Suspend != nil && *g.Suspend }

func restarts(spec corev1.PodSpec) bool {
	return spec.RestartPolicy != "" && spec.RestartPolicy != corev1.RestartPolicyNever
}

// ftEnabled is the annotation that turned GCS fault tolerance on before there was
// a field for it.
const ftEnabled = "ray.io/ft-enabled"

func (c *clusterSpec) faultTolerant() bool {
	return strings.EqualFold(c.annotations[ftEnabled], "true")
}

func (c *clusterSpec) checkRedis() error {
	options, params := c.spec.GcsFaultToleranceOptions, c.spec.HeadGroupSpec.RayStartParams
	env := c.path + ".headGroupSpec.template.spec.containers[0].env"
	_, address := c.headEnv("RAY_REDIS_ADDRESS")
	_, password := c.headEnv("REDIS_PASSWORD")
	_, username := c.headEnv("REDIS_USERNAME")
	const remedy = "use gcsFaultToleranceOptions alone"
	switch {
	case options != nil && c.annotations[ftEnabled] != "":
		return refuse("metadata.annotations", "has "+ftEnabled+" beside gcsFaultToleranceOptions", remedy)
	case options != nil && c.annotations["ray.io/external-storage-namespace"] != "":
		return refuse("metadata.annotations", "has ray.io/external-storage-namespace beside gcsFaultToleranceOptions", remedy)
	case options != nil && (address || password):
		return refuse(env, "has RAY_REDIS_ADDRESS or REDIS_PASSWORD beside gcsFaultToleranceOptions", remedy)
	case options != nil && params["redis-password"] != "":
		return refuse(c.path+".headGroupSpec.rayStartParams", "has redis-password beside gcsFaultToleranceOptions", remedy)
	case options == nil && address && !c.faultTolerant():
		return refuse(env, "has RAY_REDIS_ADDRESS", "use gcsFaultToleranceOptions for fault tolerance")
	case username || params["redis-username"] != "":
		return refuse(c.path+".headGroupSpec", "sets the Redis user name", "use gcsFaultToleranceOptions.redisUsername")
	}
	return nil
}

func (c *clusterSpec) checkAuth() error {
	auth := c.spec.AuthOptions
	if auth == nil {
		return nil
	}
	where := c.path + ".authOptions"
	kubernetes := auth.EnableK8sTokenAuth != nil && *auth.EnableK8sTokenAuth
	if auth.Mode != rayv1.AuthModeToken {
		if kubernetes {
			return refuse(where+".enableK8sTokenAuth", "is true without mode token", "set mode to token")
		}
		return nil
	}
	least := "2.52.0"
	if kubernetes {
		least = "2.55.0"
		if auth.SecretName != nil && *auth.SecretName != "" {
			return refuse(where+".secretName", "is set together with enableK8sTokenAuth", "choose one of them")
		}
	}
	ray, err := version.ParseGeneric(c.spec.RayVersion)
	if err != nil || ray.LessThan(version.MustParseGeneric(least)) {
		return refuse(c.path+".rayVersion", "is "+fault.Quote(c.spec.RayVersion), "token authentication needs "+least+" or later")
	}
	return nil
}

func (c *clusterSpec) checkUpgrade() error {
	if s := c.spec.UpgradeStrategy; s != nil && s.Type != nil {
		if c.path != "spec" {
			return refuse(c.path+".upgradeStrategy", "is set", "remove it: KubeRay reads it in a RayCluster alone")
		}
		if *s.Type != rayv1.RayClusterRecreate && *s.Type != rayv1.RayClusterUpgradeNone {
			return refuse(c.path+".upgradeStrategy.type", "is "+fault.Quote(string(*s.Type)), "want Recreate or None")
		}
	}
	return nil
}

// headEnv finds a variable of the Ray container of the head.
func (c *clusterSpec) headEnv(name string) (corev1.EnvVar, bool) {
	for _, env := range c.spec.HeadGroupSpec.Template.Spec.Containers[0].Env {
		if env.Name == name {
			return env, true
		}
	}
	return corev1.EnvVar{}, false
}
