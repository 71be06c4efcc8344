package app_test

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAQueueThatAsksForMoreIsInactive: what of a ClusterQueue Muster does not do keeps its
// workloads waiting, with the reason, until the queue or the check changes.
func TestAQueueThatAsksForMoreIsInactive(t *testing.T) {
	t.Parallel()
	check := func(controller string) string {
		return strings.Replace(oneQueue, "kueue.x-k8s.io/provisioning-request", controller, 1)
	}
	documents := strings.Split(oneQueue, "---\n")
	without := func(i int) string { return strings.Join(slices.Delete(slices.Clone(documents), i, i+1), "---\n") }
	const multiKueue = `clusterQueue "cluster-queue" is inactive: AdmissionCheck "rayjob-gpu" is of the controller "kueue.x-k8s.io/multikueue", and Muster chooses among its clusters by itself; remove the check from the queue`
	for name, c := range map[string]struct{ manifests, why string }{
		"MultiKueue":       {check("kueue.x-k8s.io/multikueue"), multiKueue},
		"no such check":    {without(3), `clusterQueue "cluster-queue" is inactive: AdmissionCheck "rayjob-gpu" does not exist`},
		"no configuration": {without(4), `clusterQueue "cluster-queue" is inactive: ProvisioningRequestConfig "rayjob-gpu-config" of AdmissionCheck "rayjob-gpu" does not exist`},
		"no parameters": {
			strings.Replace(oneQueue, "  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: rayjob-gpu-config}\n", "", 1),
			`clusterQueue "cluster-queue" is inactive: AdmissionCheck "rayjob-gpu" has no parameters; name a ProvisioningRequestConfig`,
		},
		"checks by flavor": {
			strings.Replace(check("kueue.x-k8s.io/multikueue"), "admissionChecks: [rayjob-gpu]", "admissionChecksStrategy: {admissionChecks: [{name: rayjob-gpu, onFlavors: [default-flavor]}]}", 1),
			multiKueue,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("one", 4)
			w.apply(c.manifests)
			gang := w.submit(gangOf("gang", "user-queue", 1))
			if got := w.waits(gang, workload.ReasonHeld).Reason.Message; got != c.why {
				t.Errorf("it waits because %q, want %q", got, c.why)
			}
			w.awaitStatus("the inactive queue needs attention", func(a query.StatusAnswer) bool {
				return slices.Contains(a.Attention, c.why+" (waiting workloads: 1)")
			})
			if q := w.queue("user-queue"); q.Inactive != c.why {
				t.Errorf("the queue is inactive because %q, want %q", q.Inactive, c.why)
			}
			w.apply(oneQueue)
			w.command(gang, event.Present, 1)
			if q := w.queue("user-queue"); q.Inactive != "" {
				t.Errorf("the queue is inactive still: %s", q.Inactive)
			}
		})
	}
}
