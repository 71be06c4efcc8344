package kubernetes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/kube"
)

// Anyone may label a pod. One that another scheduler serves, or that names no workload, is none
// that a dispatcher made, and queue-manager is not asked about it.
func TestAForgedPlaceholderIsKnown(t *testing.T) {
	t.Parallel()
	id := "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	for name, c := range map[string]struct {
		id, scheduler string
		forged        bool
	}{
		"of a dispatcher":      {id, PlaceholderScheduler, false},
		"of another scheduler": {id, "default-scheduler", true},
		"of no workload":       {"", PlaceholderScheduler, true},
		"of no id":             {"my-pods", PlaceholderScheduler, true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Labels, pod.Spec.SchedulerName = map[string]string{kube.PlaceholderLabel: c.id}, c.scheduler
			if got := placeholderOf(pod); got.Forged != c.forged {
				t.Errorf("forged is %v, want %v", got.Forged, c.forged)
			}
		})
	}
}
