package app_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestRefused: what Kubernetes refuses is reported with the reason.
func TestRefused(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "refused", 1), newStep(t)
	w.run(d)
	gang := w.gang("refused-gang", "refused", workers{1})
	gang.Namespace = "refused-nowhere"
	d.command(gang)
	status := d.await(gang.Workload, "refused", func(s event.GangStatus) bool { return s.Refused })
	if status.Message == "" || status.Created {
		t.Errorf("status is %+v, want a message and nothing created", status)
	}
}

// TestPodPolicyAtDispatch: the queue's policy may have become stricter since the
// submission; then nothing is created.
func TestPodPolicyAtDispatch(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "policy", 1), newStep(t)
	w.run(d)
	gang := w.gang("policy-gang", "policy", workers{1})
	gang.PodPolicy = workload.PodPolicy{Mode: workload.PodsRestricted}
	d.command(gang)
	status := d.await(gang.Workload, "refused", func(s event.GangStatus) bool { return s.Refused })
	if !strings.Contains(status.Message, "not allowed by the queue's pod policy: spec.headGroupSpec.template.spec: allowPrivilegeEscalation != false") {
		t.Errorf("the reason is %q", status.Message)
	}
	if object := w.object("RayCluster", "policy"); object != nil {
		t.Errorf("the object was created: %v", object)
	}
}
