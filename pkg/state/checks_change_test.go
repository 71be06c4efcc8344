package state

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// configured changes the policy, and lets a step pass.
func (c *checking) configured(change func(*quota.Config)) {
	settings := c.Settings()
	policy := settings.Policy
	policy.ClusterQueues, policy.AdmissionChecks = slices.Clone(policy.ClusterQueues), slices.Clone(policy.AdmissionChecks)
	change(&policy)
	c.ApplyConfiguration(settings.Queues, policy, c.Version()+1)
	c.step(0)
}

// hasLicence adds a second check to the queue.
func hasLicence(policy *quota.Config) {
	policy.AdmissionChecks = append(policy.AdmissionChecks, quota.AdmissionCheck{Name: "licence", ControllerName: "example.com/licence"})
	policy.ClusterQueues[0].AdmissionChecks = []string{"budget", "licence"}
}

// A check that a queue gets while a gang waits for another one is asked, too, before the gang starts.
func TestACheckThatAQueueGetsIsAskedBeforeAGangStarts(t *testing.T) {
	t.Parallel()
	c := newChecking(t, "budget")
	c.wantSent("budget 1 open")
	c.configured(hasLicence)
	number := c.gang().checks().Number
	c.check("budget", number, workload.CheckReady)
	c.wantPhase(workload.Queued, workload.ReasonAdmissionCheck)
	if why := c.gang().Reason.Message; !strings.Contains(why, `AdmissionCheck "licence" has not answered`) {
		t.Errorf("it waits because %q", why)
	}
	c.check("licence", c.gang().checks().Number, workload.CheckReady)
	c.wantPhase(workload.Admitted, "")
}

// As in Kueue, a gang that runs is not evicted for a check that its queue gets. Its next attempt is
// put to it.
func TestACheckThatAQueueGetsEvictsNoGang(t *testing.T) {
	t.Parallel()
	c := newChecking(t, "budget")
	c.check("budget", 1, workload.CheckReady)
	c.created(true)
	c.step(time.Minute)
	c.sent()
	c.configured(hasLicence)
	c.wantPhase(workload.Running, "")
	c.wantSent()
	c.evictNow(c.gang(), &workload.Reason{Kind: workload.ReasonDrained, Message: "drained"}, c.now)
	c.released()
	c.step(0)
	c.wantPhase(workload.Queued, workload.ReasonAdmissionCheck)
	if why := c.gang().Reason.Message; !strings.Contains(why, `"budget" has not answered`) || !strings.Contains(why, `"licence" has not answered`) {
		t.Errorf("the next attempt waits because %q", why)
	}
}

// A gang starts by no check that does not exist any more, or whose controller cannot be asked: its
// queue is inactive. When the check is back the gang is put to it.
func TestAGangWaitsForACheckThatIsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*quota.Config)
		want   string
	}{
		"deleted":             {func(policy *quota.Config) { policy.AdmissionChecks = nil }, `AdmissionCheck "budget" does not exist`},
		"without a checker":   {func(policy *quota.Config) { policy.AdmissionChecks[0].ControllerName = "kueue.x-k8s.io/multikueue" }, "Muster chooses among its clusters by itself"},
		"of nodes, unfounded": {func(policy *quota.Config) { policy.AdmissionChecks[0].ControllerName = quota.ProvisioningController }, "ProvisioningRequestConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newChecking(t, "budget")
			before := s.Settings().Policy
			s.configured(c.change)
			s.sent()
			s.check("budget", 1, workload.CheckReady)
			s.wantPhase(workload.Queued, "")
			if why := s.gang().Reason; why == nil || !strings.Contains(why.Message, c.want) {
				t.Errorf("it waits because %+v, want %q", why, c.want)
			}
			s.submitJob("other")
			if s.live.Get("other").Phase != workload.Queued {
				t.Error("another gang starts without its check")
			}
			s.Cancel(&event.WorkloadCancel{Workload: "other"}, s.now)
			s.configured(func(policy *quota.Config) { policy.AdmissionChecks = before.AdmissionChecks })
			s.wantPhase(workload.Queued, workload.ReasonAdmissionCheck)
			s.check("budget", s.gang().checks().Number, workload.CheckReady)
			s.wantPhase(workload.Admitted, "")
		})
	}
}
