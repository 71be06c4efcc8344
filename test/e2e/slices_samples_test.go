package e2e

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
)

// TestKubeRaysTPUSamplesRun: KubeRay's samples that request google.com/tpu run, with all
// hosts of their slices, on a fleet that has such hosts. The one that names a service
// account of its own is refused, as docs/compatibility.md has it.
func TestKubeRaysTPUSamplesRun(t *testing.T) {
	t.Parallel()
	hosts := map[string]int{ // of the sample's slice
		"ray-cluster.tpu-v4-multihost.yaml": 2, "ray-cluster.tpu-v4-singlehost.yaml": 1,
		"ray-cluster.tpu-v6e-16-multihost.yaml": 4, "ray-cluster.tpu-v6e-256-multihost.yaml": 64, "ray-cluster.tpu-v6e-singlehost.yaml": 1,
		"ray-job.tpu-v6e-16-multihost.yaml": 4, "ray-job.tpu-v6e-256-multihost.yaml": 64, "ray-job.tpu-v6e-singlehost.yaml": 1,
		"ray-service.tpu-single-host.yaml": 1,
	}
	w := newWorld(t)
	w.nodes("cpu", 2, "cpu=64", "memory=512Gi", "ephemeral-storage=1Ti")
	for group, f := range map[string]struct {
		hosts                 int
		accelerator, topology string
	}{
		"v4-8": {2, "tpu-v4-podslice", "2x2x2"}, "v4-4": {1, "tpu-v4-podslice", "2x2x1"},
		"v6e-4": {2, "tpu-v6e-slice", "2x2"}, "v6e-16": {4, "tpu-v6e-slice", "4x4"}, "v6e-256": {64, "tpu-v6e-slice", "16x16"},
		"service": {1, "tpu-v4-podslice", "2x2x1"},
	} {
		w.tpuFleet(group, f.hosts, f.accelerator, f.topology, "cpu=180", "memory=720Gi", "ephemeral-storage=100Gi")
	}
	found := 0
	for _, sample := range readSamples(t) {
		if !strings.Contains(string(sample.manifest), "google.com/tpu") || strings.HasPrefix(sample.name, "vllm/") {
			continue
		}
		found++
		id := w.submit(string(sample.manifest))
		got := 0
		for _, p := range w.reaches(id, workload.Running).Placements {
			if p.PodSet == "tpu-group" {
				got += p.Pods
			}
		}
		if got != hosts[sample.name] {
			t.Errorf("%s ran with %d hosts, want %d", sample.name, got, hosts[sample.name])
		}
		w.cancel(id) // the next one may have its name, and need its hosts
		w.released(id)
	}
	if found != len(hosts) {
		t.Errorf("KubeRay has %d samples with TPUs, want %d", found, len(hosts))
	}
}
