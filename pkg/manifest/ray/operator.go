package ray

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/kube"
)

// Operator is what of a KubeRay operator changes the pods that it creates and
// what no manifest shows: its version, its settings, and the runtime classes of
// its cluster. The zero value is of no use; start from Shipped.
type Operator struct {
	// Version of the operator. The rules are known for v1.6.
	Version string `json:"version"`
	// FeatureGates that differ from the version's defaults.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// InitContainerInjection is ENABLE_INIT_CONTAINER_INJECTION: workers wait for
	// the head in an init container of KubeRay's.
	InitContainerInjection bool `json:"initContainerInjection"`
	// RedisCleanup is ENABLE_GCS_FT_REDIS_CLEANUP: after a cluster with GCS fault
	// tolerance a pod cleans Redis up.
	RedisCleanup bool `json:"redisCleanup"`
	// HeadSidecarContainers and WorkerSidecarContainers are of the operator's
	// configuration file.
	HeadSidecarContainers   []corev1.Container `json:"headSidecarContainers,omitempty"`
	WorkerSidecarContainers []corev1.Container `json:"workerSidecarContainers,omitempty"`
	// RuntimeClasses are the cluster's, with the overhead of a pod; empty for none.
	RuntimeClasses map[string]corev1.ResourceList `json:"runtimeClasses,omitempty"`
}

// Feature gates of KubeRay that change what it creates or refuses
// (pkg/features/features.go).
const (
	gateDeletionPolicy     = "RayJobDeletionPolicy"
	gateMultiHostIndexing  = "RayMultiHostIndexing"
	gateIncrementalUpgrade = "RayServiceIncrementalUpgrade"
	gateCronJob            = "RayCronJob"
)

// gateDefaults are of KubeRay 1.6.
func gateDefaults() map[string]bool {
	return map[string]bool{
		gateDeletionPolicy: true, gateMultiHostIndexing: true, gateIncrementalUpgrade: false, gateCronJob: false,
		"RayClusterStatusConditions": true, "AsyncJobInfoQuery": false,
	}
}

// Shipped returns KubeRay 1.6.2 as it is installed without further settings. The
// GPU operator's runtime class, which has no overhead, is known to it.
func Shipped() Operator {
	return Operator{
		Version: "v1.6.2", InitContainerInjection: true, RedisCleanup: true,
		RuntimeClasses: map[string]corev1.ResourceList{"nvidia": {}},
	}
}

// ReadOperator reads an operator's profile in YAML or JSON. What it does not
// name is as shipped.
func ReadOperator(data []byte) (Operator, error) {
	o := Shipped()
	if err := o.fill(data); err != nil {
		return Operator{}, fmt.Errorf("KubeRay profile: %w", err)
	}
	if err := o.check(); err != nil {
		return Operator{}, fmt.Errorf("KubeRay profile: %w", err)
	}
	return o, nil
}

// fill reads the profile strictly.
func (o *Operator) fill(data []byte) error {
	var tree map[string]any
	if err := yaml.UnmarshalStrict(data, &tree); err != nil {
		return err
	}
	unknown, err := kube.DecodeStrictly("", tree, o)
	return errors.Join(append(unknown, err)...)
}

func (o Operator) check() error {
	parsed, err := version.ParseGeneric(o.Version)
	if err != nil || parsed.Major() != 1 || parsed.Minor() != 6 {
		return fmt.Errorf("version %q: want v1.6.0 to v1.6.2, of which the rules are known", o.Version)
	}
	known := gateDefaults()
	for _, gate := range slices.Sorted(maps.Keys(o.FeatureGates)) {
		if _, ok := known[gate]; !ok {
			return fmt.Errorf("featureGates: KubeRay 1.6 has no gate %q; it has %v", gate, slices.Sorted(maps.Keys(known)))
		}
	}
	for field, containers := range map[string][]corev1.Container{
		"headSidecarContainers": o.HeadSidecarContainers, "workerSidecarContainers": o.WorkerSidecarContainers,
	} {
		names := map[string]bool{}
		for i := range containers {
			if err := checkContainer(&verdict{}, fmt.Sprintf("%s[%d]", field, i), &containers[i], names); err != nil {
				return err
			}
		}
	}
	for _, class := range slices.Sorted(maps.Keys(o.RuntimeClasses)) {
		if faults := validation.IsDNS1123Subdomain(class); len(faults) > 0 {
			return fmt.Errorf("runtimeClasses: %q cannot name a runtime class: %s", class, faults[0])
		}
		if _, err := kube.Amounts(o.RuntimeClasses[class]); err != nil {
			return fmt.Errorf("runtimeClasses.%s: %w", class, err)
		}
	}
	return nil
}

// enabled reports whether a feature gate is on.
func (o Operator) enabled(gate string) bool {
	if set, ok := o.FeatureGates[gate]; ok {
		return set
	}
	return gateDefaults()[gate]
}

// waitGCSReady is the init container that KubeRay adds to workers. It matters
// for workers that ask for less.
func waitGCSReady(image string) corev1.Container {
	return corev1.Container{Name: "wait-gcs-ready", Image: image, Resources: fixed("200m", "256Mi")}
}

// autoscalerContainer is what runs beside the head of an autoscaled cluster
// (BuildAutoscalerContainer).
func autoscalerContainer(image string) corev1.Container {
	return corev1.Container{Name: "autoscaler", Image: image, Resources: fixed("500m", "512Mi")}
}

// redisCleanupContainer takes the place of the head's containers in the pod that
// cleans Redis up (buildRedisCleanupJob).
func redisCleanupContainer(image string) corev1.Container {
	return corev1.Container{Name: "redis-cleanup", Image: image, Resources: fixed("200m", "256Mi")}
}

// submitterContainer is what KubeRay submits a job with when the user says
// nothing about it (GetDefaultSubmitterContainer).
func submitterContainer(image string) corev1.Container {
	return corev1.Container{
		Name: "ray-job-submitter", Image: image,
		Resources: corev1.ResourceRequirements{Limits: amounts("1", "1Gi"), Requests: amounts("500m", "200Mi")},
	}
}

// imageOf is the image of the Ray container, which is the first.
func imageOf(containers []corev1.Container) string {
	if len(containers) == 0 {
		return ""
	}
	return containers[0].Image
}

func fixed(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: amounts(cpu, memory), Limits: amounts(cpu, memory)}
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: kube.MustQuantity(cpu), corev1.ResourceMemory: kube.MustQuantity(memory),
	}
}
