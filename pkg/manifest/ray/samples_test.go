package ray

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

var (
	separator = regexp.MustCompile(`(?m)^---\s*$`)
	rayKind   = regexp.MustCompile(`(?m)^kind: Ray(Cluster|Job|Service|CronJob)\s*$`)
)

// samples returns KubeRay's own manifests of Ray kinds, by file name.
func samples(t testing.TB) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ray-project/kuberay/ray-operator").Output()
	if err != nil {
		t.Fatalf("find the ray-operator module: %v", err)
	}
	found := map[string]string{}
	root := filepath.Join(strings.TrimSpace(string(out)), "config", "samples")
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range separator.Split(string(content), -1) {
			if rayKind.MatchString(document) {
				found[strings.TrimSuffix(filepath.Base(path), ".yaml")] = document
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// summary is the gang in short: its sets, and its sum of accelerators.
func summary(sets []workload.PodSet) string {
	var parts []string
	accelerators := resource.List{}
	for _, set := range sets {
		parts = append(parts, fmt.Sprintf("%s %d", set.Name, set.Count))
		for name, amount := range set.Template.Requests.Times(int64(set.Count)) {
			if strings.Contains(string(name), "/") {
				accelerators[name] += amount
			}
		}
	}
	if len(accelerators) > 0 {
		parts = append(parts, accelerators.String())
	}
	return strings.Join(parts, ", ")
}

// TestSamples holds the prediction against what KubeRay creates of its samples.
func TestSamples(t *testing.T) {
	t.Parallel()
	const (
		headOnly      = "headgroup 1"
		headSubmitter = "headgroup 1, submitter 1"
		smallJob      = "headgroup 1, small-group 1, submitter 1"
		smallCluster  = "headgroup 1, small-group 1"
		workgroup     = "headgroup 1, workergroup 1"
		twoWorkers    = "headgroup 1, worker 2"
	)
	want := map[string]string{
		"ray-cluster-label-selector":                        "headgroup 1, large-cpu-group 1; admitted at headgroup 1, large-cpu-group 10, accelerator-group 10, spot-group 5",
		"ray-cluster-resource-isolation-with-overrides.gke": workgroup,
		"ray-cluster-resource-isolation.gke":                workgroup,
		"ray-cluster.auth":                                  workgroup + "; admitted at headgroup 1, workergroup 5",
		"ray-cluster.auth-manual":                           workgroup,
		"ray-cluster.auth.secret-ref":                       workgroup + "; admitted at headgroup 1, workergroup 5",
		"ray-cluster.autoscaler":                            headOnly + "; admitted at headgroup 1, small-group 10",
		"ray-cluster.autoscaler-v2":                         headOnly + "; admitted at headgroup 1, small-group 10",
		"ray-cluster.complete":                              smallCluster,
		"ray-cluster.custom-head-service":                   headOnly,
		"ray-cluster.deprecate-gcs-ft":                      smallCluster,
		"ray-cluster.embed-grafana":                         smallCluster,
		"ray-cluster.external-redis":                        smallCluster,
		"ray-cluster.external-redis-uri":                    smallCluster,
		"ray-cluster.fluentbit":                             headOnly,
		"ray-cluster.gke-bucket":                            headOnly,
		"ray-cluster.head-command":                          headOnly,
		"ray-cluster.kai-gpu-sharing":                       "headgroup 1, shared-gpu 2",
		"ray-cluster.kai-scheduler":                         twoWorkers,
		"ray-cluster.kubernetes.auth":                       workgroup,
		"ray-cluster.kubernetes.auth-manual":                workgroup,
		"ray-cluster.overwrite-command":                     smallCluster,
		"ray-cluster.persistent-redis":                      smallCluster,
		"ray-cluster.py-spy":                                headOnly,
		"ray-cluster.sample":                                workgroup,
		"ray-cluster.scheduler-plugins":                     twoWorkers,
		"ray-cluster.separate-ingress":                      headOnly,
		"ray-cluster.tls":                                   smallCluster,
		"ray-cluster.tpu-v4-multihost":                      "headgroup 1, tpu-group 2, google.com/tpu 8",
		"ray-cluster.tpu-v4-singlehost":                     "headgroup 1, tpu-group 1, google.com/tpu 4",
		"ray-cluster.tpu-v6e-16-multihost":                  "headgroup 1, tpu-group 4, google.com/tpu 16",
		"ray-cluster.tpu-v6e-256-multihost":                 "headgroup 1, tpu-group 64, google.com/tpu 256",
		"ray-cluster.tpu-v6e-singlehost":                    "headgroup 1, tpu-group 1, google.com/tpu 4",
		"ray-cluster.uv":                                    headOnly,
		"ray-cluster.verl":                                  "headgroup 1, nvidia.com/gpu 4",
		"ray-cluster.volcano-scheduler":                     headOnly,
		"ray-cluster.volcano-scheduler-queue":               twoWorkers,
		"ray-cluster.yunikorn-scheduler":                    twoWorkers,
		"ray-cronjob.sample":                                smallJob + "; refused: kind: is \"RayCronJob\", whose RayJobs KubeRay would create itself, past the queue; submit spec.jobTemplate as a RayJob at each of its times, for instance with `muster submit` in a CronJob",
		"ray-service.custom-serve-service":                  smallCluster,
		"ray-service.deepseek":                              "headgroup 1, gpu-group 2, nvidia.com/gpu 16",
		"ray-service.different-port":                        smallCluster,
		"ray-service.high-availability":                     twoWorkers,
		"ray-service.incremental-upgrade":                   headOnly + "; refused: spec.upgradeStrategy.type: is \"NewClusterWithIncrementalUpgrade\", with which KubeRay starts a second cluster beside the first; remove it, or set it to None; to upgrade, submit the new version under another name and cancel the old one when the new one runs",
		"ray-service.llm-serve":                             "headgroup 1, gpu-group 1, nvidia.com/gpu 4",
		"ray-service.mobilenet":                             "headgroup 1, worker 1",
		"ray-service.no-ray-serve-replica":                  "headgroup 1, small-group 2",
		"ray-service.sample":                                smallCluster,
		"ray-service.stable-diffusion":                      "headgroup 1, gpu-group 1, nvidia.com/gpu 1",
		"ray-service.text-ml":                               smallCluster,
		"ray-service.text-summarizer":                       "headgroup 1, gpu-group 1, nvidia.com/gpu 1",
		"ray-service.tpu-single-host":                       "headgroup 1, tpu-group 1, google.com/tpu 4",
		"ray-service.vllm-tpu-v6e-singlehost":               "KubeRay chokes: spec.rayClusterConfig.headGroupSpec.template.spec.serviceAccountName: \"$KSA_NAME\" cannot name a service account; a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
		"ray-data-image-resize-gcsfusecsi-job":              "headgroup 1, worker-group 3, submitter 1",
		"ray-job.batch-inference":                           "headgroup 1, submitter 1, nvidia.com/gpu 4",
		"ray-job.custom-head-svc":                           smallJob,
		"ray-job.deletion-rules":                            smallJob,
		"ray-job.image-resize":                              "headgroup 1, small-group 4, submitter 1",
		"ray-job.interactive-mode":                          "headgroup 1, default-group 1",
		"ray-job.kueue-toy-sample":                          smallJob,
		"ray-job.light-weight-submitter":                    smallJob,
		"ray-job.modin":                                     headSubmitter,
		"ray-job.pytorch-distributed-training":              "headgroup 1, submitter 1, nvidia.com/gpu 1",
		"ray-job.pytorch-image-classifier":                  "headgroup 1, gpu-group 4, submitter 1, nvidia.com/gpu 4",
		"ray-job.pytorch-mnist":                             "headgroup 1, small-group 2, submitter 1",
		"ray-job.resources":                                 smallJob,
		"ray-job.sample":                                    smallJob,
		"ray-job.shutdown":                                  smallJob,
		"ray-job.sidecar-mode":                              smallCluster,
		"ray-job.tpu-v6e-16-multihost":                      "headgroup 1, tpu-group 4, submitter 1, google.com/tpu 16",
		"ray-job.tpu-v6e-256-multihost":                     "headgroup 1, tpu-group 64, submitter 1, google.com/tpu 256",
		"ray-job.tpu-v6e-singlehost":                        "headgroup 1, tpu-group 1, submitter 1, google.com/tpu 4",
		"ray-job.use-existing-raycluster":                   "submitter 1; refused: spec.clusterSelector: is set; give the job a rayClusterSpec of its own: Muster cannot promise room in a cluster that it did not start for the job",
		"ray-job.volcano-scheduler-queue":                   "headgroup 1, small-group 2, submitter 1",
		"ray-job.yunikorn-scheduler":                        smallJob,
	}
	got := map[string]string{}
	for name, text := range samples(t) {
		predicted, err := Shipped().Predict([]byte(text))
		got[name] = summary(predicted.Created)
		if admitted := summary(predicted.PodSets); predicted.Refusal == nil && admitted != got[name] {
			got[name] += "; admitted at " + admitted
		}
		if predicted.Refusal != nil {
			got[name] += "; refused: " + predicted.Refusal.Error()
		}
		if err != nil {
			got[name] = "KubeRay chokes: " + err.Error()
		}
		if err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v is no refusal", name, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("predicted pods (-want +got):\n%s", diff)
	}
}

// TestSampleRequests pins the effective requests where KubeRay adds containers.
func TestSampleRequests(t *testing.T) {
	t.Parallel()
	all := samples(t)
	for _, c := range []struct {
		sample, set string
		want        resource.List
	}{
		{"ray-job.sample", "small-group", resource.List{"cpu": 200, "memory": 256 << 20, "pods": 1}}, // wait-gcs-ready
		{"ray-job.sample", "submitter", resource.List{"cpu": 500, "memory": 200 << 20, "pods": 1}},
		{"ray-job.light-weight-submitter", "submitter", resource.List{"pods": 1}}, // the user's, which asks nothing
		{"ray-job.sidecar-mode", "headgroup", resource.List{"cpu": 1500, "memory": 2248 << 20, "pods": 1}},
		{"ray-cluster.autoscaler", "headgroup", resource.List{"cpu": 1500, "memory": 2560 << 20, "pods": 1}},
		{"ray-cluster.fluentbit", "headgroup", resource.List{"cpu": 1100, "memory": 2176 << 20, "pods": 1}},
	} {
		t.Run(c.sample, func(t *testing.T) {
			object, err := Read([]byte(all[c.sample]))
			if err != nil {
				t.Errorf("%s: %v", c.sample, err)
				return
			}
			for _, set := range object.PodSets {
				if set.Name == c.set && !set.Template.Requests.Equal(c.want) {
					t.Errorf("%s of %s asks %s, want %s", c.set, c.sample, set.Template.Requests, c.want)
				}
			}
			if !strings.Contains(summary(object.PodSets), c.set) {
				t.Errorf("%s has no %s", c.sample, c.set)
			}
		})
	}
}
