package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// A gang that is preempted from a flavor with a check starts in a flavor without one: unchecked, and
// without what the check had added to its pods. With a check of its own, that one is asked.
func TestAGangThatIsPreemptedStartsInAnotherFlavor(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{"without a check": "", "with another check": "licence"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChecking(t, "budget")
			c.configured(func(policy *quota.Config) { twoCheckedFlavors(policy, other) })
			for _, node := range []string{"n0", "n1"} {
				c.node(node, func(n *capacity.Node) { n.Labels = map[string]string{"pool": "booked"} })
			}
			c.check("budget", c.gang().checks().Number, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "workers", NodeSelector: map[string]string{"pool": "booked"}}))
			c.wantPhase(workload.Admitted, "")
			c.created(true)
			c.step(time.Minute)
			c.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
				ID: "urgent", Queue: "q", Kind: "RayJob", Name: "urgent", Priority: 9, PodSets: []workload.PodSet{podSet("workers", workload.RoleWorker, 2)},
			}}, nil, c.now)
			c.step(0)
			c.CheckAnswered(&event.CheckAnswer{Check: "budget", Workload: "urgent", Number: 1, Status: workload.CheckReady}, c.now)
			c.step(0)
			c.wantPhase(workload.Evicting, workload.ReasonPreempted)
			c.node("n2", nil)
			c.node("n3", nil)
			c.sent()
			c.released()
			c.step(time.Minute)
			if other != "" {
				c.wantPhase(workload.Queued, workload.ReasonAdmissionCheck)
				if why := c.gang().Reason.Message; !strings.Contains(why, `"licence" has not answered`) || strings.Contains(why, "budget") {
					t.Errorf("it waits because %q", why)
				}
				c.check("licence", c.gang().checks().Number, workload.CheckReady)
			}
			c.wantPhase(workload.Admitted, "")
			if set := c.gang().PodSets[0].Template; set.NodeSelector != nil {
				t.Errorf("its pods select %v", set.NodeSelector)
			}
			if f := c.gang().Flavors; len(f) != 1 || f[0].Flavors["cpu"] != "other" {
				t.Errorf("its flavors are %+v", f)
			}
		})
	}
}

// twoCheckedFlavors gives the queue a second flavor, with a check of its own unless that is empty.
func twoCheckedFlavors(policy *quota.Config, check string) {
	policy.Flavors = append(policy.Flavors, quota.Flavor{Name: "other"})
	q := &policy.ClusterQueues[0]
	q.Preemption = &quota.Preemption{WithinClusterQueue: quota.LowerPriority}
	q.Fungibility = &quota.FlavorFungibility{WhenCanPreempt: quota.MayStopSearch}
	eight := []quota.ResourceQuota{{Name: "cpu", Nominal: 8}}
	q.ResourceGroups = []quota.ResourceGroup{{
		CoveredResources: []resource.Name{"cpu"}, Flavors: []quota.FlavorQuotas{{Name: "default", Resources: eight}, {Name: "other", Resources: eight}},
	}}
	q.AdmissionChecks, q.ChecksStrategy = nil, &quota.ChecksStrategy{AdmissionChecks: []quota.FlavoredCheck{{Name: "budget", OnFlavors: []string{"default"}}}}
	if check != "" {
		policy.AdmissionChecks = append(policy.AdmissionChecks, quota.AdmissionCheck{Name: check, ControllerName: "example.com/" + check})
		q.ChecksStrategy.AdmissionChecks = append(q.ChecksStrategy.AdmissionChecks, quota.FlavoredCheck{Name: check, OnFlavors: []string{"other"}})
	}
}
