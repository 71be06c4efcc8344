package admission_test

import (
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// TestWhatGangsLackThatMoreNodesWouldGive: gangs without places count, equal ones together;
// gangs beyond the quota do not.
func TestWhatGangsLackThatMoreNodesWouldGive(t *testing.T) {
	t.Parallel()
	config := askingConfig(4)
	config.ClusterQueues[0].AdmissionChecks = nil
	s := askingState(t, config, nodeOf("a", 8, 0))
	for i := range 3 {
		enqueue(s, i, "queue", []workload.PodSet{setOf("head", 1, 1, 0), setOf("workers", 2, 1, 1)})
	}
	enqueue(s, 3, "queue", []workload.PodSet{setOf("workers", 8, 1, 1)}) // beyond the quota
	enqueue(s, 4, "queue", []workload.PodSet{setOf("workers", 4, 1, 1)})
	wantPlan(t, decide(s), "")
	d := s.Unmet(10, nil)
	if d.Gangs != 4 || d.Pods != 3*3+4 || d.LeftOut != 0 || len(d.Shapes) != 2 {
		t.Fatalf("the demand is %+v, want four gangs of two kinds", d)
	}
	first := d.Shapes[0]
	if first.ClusterQueue != "queue" || first.Gangs != 3 || first.Asked || len(first.PodSets) != 2 || first.PodSets[1].Pods != 2 ||
		first.PodSets[1].Requests["nvidia.com/gpu"] != 1 || first.PodSets[1].Unplaced != 2 || first.PodSets[0].Unplaced != 0 {
		t.Errorf("the first is %+v", first)
	}
	if got := d.Requested(); got["nvidia.com/gpu"] != 3*2+4 {
		t.Errorf("they request %v, want 10 GPUs", got)
	}
	if d := s.Unmet(1, nil); d.Gangs != 4 || d.LeftOut != 1 || len(d.Shapes) != 1 {
		t.Errorf("with one kind at most the demand is %+v", d)
	}
	s.SetNode(nodeOf("b", 8, 4))
	decide(s)
	if d := s.Unmet(10, nil); d.Gangs != 0 {
		t.Errorf("after nodes for two, which use the quota, the demand is %+v, want none", d)
	}
}

func TestNodesThatAreAskedForAreMarkedInTheDemand(t *testing.T) {
	t.Parallel()
	s := askingState(t, askingConfig(100, resource.Name("nvidia.com/gpu")), nodeOf("a", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 4, 1, 1)})
	wantPlan(t, decide(s), "ask gang-0 [{workers 4}]")
	if d := s.Unmet(10, nil); d.Gangs != 1 || !d.Shapes[0].Asked {
		t.Errorf("the demand is %+v, want one gang whose nodes are asked for", d)
	}
}

// TestAGangIsPutToChecksOfItsFlavorsOnly, as onFlavors of Kueue says.
func TestAGangIsPutToChecksOfItsFlavorsOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		onFlavors []string
		want      string
	}{
		"of its flavor":  {[]string{"default"}, ""},
		"of all flavors": {nil, ""},
		"of another":     {[]string{"spot"}, "admit gang-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := askingConfig(100)
			config.Flavors = append(config.Flavors, quota.Flavor{Name: "spot"})
			config.AdmissionChecks = []quota.AdmissionCheck{{Name: "budget", ControllerName: "example.com/budget"}}
			config.ClusterQueues[0].AdmissionChecks = nil
			config.ClusterQueues[0].ChecksStrategy = &quota.ChecksStrategy{AdmissionChecks: []quota.FlavoredCheck{{Name: "budget", OnFlavors: test.onFlavors}}}
			s := askingState(t, config, nodeOf("a", 8, 4))
			enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 4, 1, 1)})
			plan := decide(s)
			wantPlan(t, plan, test.want)
			if asked := len(plan.Checks) == 1; asked != (test.want == "") || asked && (len(plan.Checks[0].Checks) != 1 || !plan.Checks[0].Quota) {
				t.Errorf("checks are %+v", plan.Checks)
			}
		})
	}
}

// TestTheDemandIsOfOneFlavorAfterTheOther: the first that is within quota, with its labels and
// tolerations, and the next after each of the times that the queue gives a flavor.
func TestTheDemandIsOfOneFlavorAfterTheOther(t *testing.T) {
	t.Parallel()
	flavor := func(name string) quota.Flavor {
		return quota.Flavor{Name: name, NodeLabels: map[string]string{"pool": name}, Tolerations: []workload.Toleration{{Key: name, Operator: "Exists"}}}
	}
	quotas := func(name string, gpus int64) quota.FlavorQuotas {
		return quota.FlavorQuotas{Name: name, Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: gpus}}}
	}
	config := askingConfig(0)
	config.Flavors = []quota.Flavor{flavor("tiny"), flavor("reserved"), flavor("spot")}
	config.ClusterQueues[0].AdmissionChecks = nil
	config.ClusterQueues[0].QuotaCheckStrategy = quota.IgnoreUndeclared
	config.ClusterQueues[0].ResourceGroups = []quota.ResourceGroup{{
		CoveredResources: []resource.Name{"nvidia.com/gpu"}, Flavors: []quota.FlavorQuotas{quotas("tiny", 1), quotas("reserved", 9), quotas("spot", 9)},
	}}
	for name, c := range map[string]struct {
		fungibility *quota.FlavorFungibility
		lacked      time.Duration
		want        string
	}{
		"the first by default":       {nil, 1000 * time.Hour, "reserved"},
		"the first for some time":    {&quota.FlavorFungibility{WhenNotProvisioned: quota.TryNextFlavor, ProvisionWithinSeconds: 600}, 599 * time.Second, "reserved"},
		"then the next":              {&quota.FlavorFungibility{WhenNotProvisioned: quota.TryNextFlavor, ProvisionWithinSeconds: 600}, 600 * time.Second, "spot"},
		"and then the first again":   {&quota.FlavorFungibility{WhenNotProvisioned: quota.TryNextFlavor, ProvisionWithinSeconds: 600}, 1200 * time.Second, "reserved"},
		"the first without any time": {&quota.FlavorFungibility{WhenNotProvisioned: quota.TryNextFlavor}, 1000 * time.Hour, "reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := config
			config.ClusterQueues = slices.Clone(config.ClusterQueues)
			config.ClusterQueues[0].Fungibility = c.fungibility
			s := askingState(t, config, nodeOf("a", 8, 0))
			enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
			wantPlan(t, decide(s), "")
			d := s.Unmet(10, func(workload.ID) time.Duration { return c.lacked })
			if len(d.Shapes) != 1 {
				t.Fatalf("the demand is %+v, want one gang", d)
			}
			pods := d.Shapes[0].PodSets[0]
			if pods.Flavors["nvidia.com/gpu"] != c.want || pods.NodeSelector["pool"] != c.want || len(pods.Tolerations) != 1 || pods.Tolerations[0].Key != c.want {
				t.Errorf("the demand is of %+v, want flavor %s", pods, c.want)
			}
		})
	}
}
