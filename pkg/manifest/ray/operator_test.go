package ray

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func TestReadOperator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, profile, want string }{
		{"unknown field", "sidecars: []", "unknown field"},
		{"version", "version: v1.7.0", `version "v1.7.0": want v1.6.0 to v1.6.2`},
		{"gate", "featureGates: {RayMultihost: true}", `KubeRay 1.6 has no gate "RayMultihost"`},
		{"container", "headSidecarContainers: [{name: log}]", "headSidecarContainers[0].image: is empty"},
		{"class", "runtimeClasses: {kata: {cpu: -1}}", "runtimeClasses.kata.cpu: \"-1\" is negative"},
		{"class name", "runtimeClasses: {K: {cpu: 1}}", `"K" cannot name a runtime class`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := ReadOperator([]byte(c.profile)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.want)
			}
		})
	}
	o, err := ReadOperator([]byte("version: v1.6.0\n"))
	if err != nil || !o.InitContainerInjection || !o.RedisCleanup || o.Version != "v1.6.0" {
		t.Errorf("a profile of a version alone is %+v, %v: want the rest as shipped", o, err)
	}
}

// TestOperatorSettings: settings of the operator change what it creates.
func TestOperatorSettings(t *testing.T) {
	t.Parallel()
	small := edit(t, glue, "limits: {cpu: \"4\", memory: 16G, nvidia.com/gpu: 2}", "limits: {cpu: 100m, memory: 1Mi}")
	tolerant := edit(t, small, "limits: {cpu: \"2\", memory: 16G}", "limits: {cpu: 100m, memory: 16G}",
		"spec:\n  headGroup", "spec:\n  gcsFaultToleranceOptions: {redisAddress: 'redis:6379'}\n  headGroup")
	inClass := edit(t, small, "nodeSelector: {zone: a}", "runtimeClassName: kata")
	const sidecar = "[{name: log, image: i, resources: {requests: {cpu: 50m}}}]"
	for _, c := range []struct {
		name, profile, manifest, set string
		created, admitted            int64 // millicores of a pod
	}{
		{"as shipped, workers wait for the head", "{}", small, "gpu", 200, 200},
		{"without that", "initContainerInjection: false", small, "gpu", 100, 100},
		{"with sidecars of workers", "workerSidecarContainers: " + sidecar, small, "gpu", 200, 200},
		{"with these alone", "initContainerInjection: false\nworkerSidecarContainers: " + sidecar, small, "gpu", 150, 150},
		{"with sidecars of heads", "headSidecarContainers: " + sidecar, small, HeadGroup, 2050, 2050},
		{"Redis is cleaned up in the head's place", "{}", tolerant, HeadGroup, 100, 200},
		{"without that", "redisCleanup: false", tolerant, HeadGroup, 100, 100},
		{"the overhead of a runtime class", "runtimeClasses: {kata: {cpu: 30m}}", inClass, "gpu", 230, 230},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := ReadOperator([]byte(c.profile))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				return
			}
			predicted, err := o.Predict([]byte(c.manifest))
			if err != nil || predicted.Refusal != nil {
				t.Errorf("%s: %v, %v", c.name, err, predicted.Refusal)
				return
			}
			if got := millicores(predicted.Created, c.set); got != c.created {
				t.Errorf("%s: %s is created with %d millicores, want %d", c.name, c.set, got, c.created)
			}
			if got := millicores(predicted.PodSets, c.set); got != c.admitted {
				t.Errorf("%s: %s is admitted with %d millicores, want %d", c.name, c.set, got, c.admitted)
			}
		})
	}
	o, err := ReadOperator([]byte("featureGates: {RayJobDeletionPolicy: false}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range []string{
		edit(t, train, "spec:\n  entry", "spec:\n  deletionStrategy: {onSuccess: {policy: DeleteSelf}, onFailure: {policy: DeleteSelf}}\n  entry"),
		edit(t, glue, "replicas: 2\n    maxReplicas: 4", "suspend: true"),
	} {
		if _, err := o.Predict([]byte(manifest)); err == nil || !strings.Contains(err.Error(), "RayJobDeletionPolicy is off") {
			t.Errorf("with the gate off: error %v", err)
		}
	}
}

func millicores(sets []workload.PodSet, name string) int64 {
	for _, set := range sets {
		if set.Name == name {
			return set.Template.Requests[resource.CPU]
		}
	}
	return -1
}

// TestNothingCreated: a manifest that waits for a person is predicted as nothing, and refused.
func TestNothingCreated(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]string{
		"suspended cluster":        edit(t, glue, "spec:\n  headGroup", "spec:\n  suspend: true\n  headGroup"),
		"suspended job":            edit(t, train, "spec:\n  entry", "spec:\n  suspend: true\n  entry"),
		"job on a held cluster":    edit(t, train, "  rayClusterSpec:\n", "  rayClusterSpec:\n    suspend: true\n"),
		"managed by another":       edit(t, glue, "spec:\n  headGroup", "spec:\n  managedBy: kueue.x-k8s.io/multikueue\n  headGroup"),
		"service of another":       edit(t, serve, "spec:\n  serve", "spec:\n  managedBy: kueue.x-k8s.io/multikueue\n  serve"),
		"suspended service":        edit(t, serve, "    headGroupSpec:\n", "    suspend: true\n    headGroupSpec:\n"),
		"cluster of a job managed": edit(t, train, "  rayClusterSpec:\n", "  rayClusterSpec:\n    managedBy: kueue.x-k8s.io/multikueue\n"),
	} {
		t.Run(name, func(t *testing.T) {
			predicted, err := Shipped().Predict([]byte(manifest))
			if err != nil || len(predicted.Created) > 0 || len(predicted.PodSets) == 0 || predicted.Refusal == nil {
				t.Errorf("%s: %v, refusal %v, created %s, admitted %s: want nothing created, and a refusal",
					name, err, predicted.Refusal, summary(predicted.Created), summary(predicted.PodSets))
			}
		})
	}
}
