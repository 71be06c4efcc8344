package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// preempting is askingConfig with a policy.
func preempting(gpus int64, policy quota.Preemption) quota.Config {
	c := askingConfig(gpus)
	c.ClusterQueues[0].Preemption = &policy
	return c
}

// enqueueWith enqueues a gang of workers of one GPU each.
func enqueueWith(s *admission.State, i int, queue string, priority int32, workers int) {
	s.Enqueue(admission.Waiting{Order: int64(i), Workload: &workload.Workload{
		ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: queue, Priority: priority, PodSets: []workload.PodSet{setOf("workers", workers, 1, 1)},
	}})
}

// withdrawn lists the workloads whose requests a plan withdraws.
func withdrawn(p admission.Plan) string {
	var ids []string
	for _, w := range p.Withdrawals {
		ids = append(ids, string(w.Workload))
	}
	return strings.Join(ids, ", ")
}

// A gang that waits for nodes gives its quota to one that may evict it, as in Kueue, and to no
// other.
func TestQuotaOfAGangThatAsksIsTakenBackByPriority(t *testing.T) {
	t.Parallel()
	lower := quota.Preemption{WithinClusterQueue: quota.LowerPriority}
	for name, test := range map[string]struct {
		policy   quota.Preemption
		priority int32
		workers  int
		want     string
	}{
		"of a higher priority":                {lower, 9, 3, "ask gang-3 [{workers 3}]; gang-2, gang-1"},
		"the last suffices":                   {lower, 9, 1, "ask gang-3 [{workers 1}]; gang-2"},
		"those that are not needed keep it":   {lower, 9, 2, "ask gang-3 [{workers 2}]; gang-1"},
		"more than all":                       {lower, 9, 4, "; "},
		"of equal priority":                   {lower, 0, 3, "; "},
		"newer equal, but it is newer itself": {quota.Preemption{WithinClusterQueue: quota.LowerOrNewerEqualPriority}, 0, 3, "; "},
		"without a policy":                    {quota.Preemption{}, 9, 3, "; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := askingState(t, preempting(3, test.policy), nodeOf("a", 8, 0))
			enqueueWith(s, 1, "queue", 0, 2)
			enqueueWith(s, 2, "queue", 0, 1)
			wantPlan(t, decide(s), "ask gang-1 [{workers 2}], ask gang-2 [{workers 1}]")
			enqueueWith(s, 3, "queue", test.priority, test.workers)
			p := decide(s)
			if got := text(p) + "; " + withdrawn(p); got != test.want {
				t.Errorf("the plan is %q, want %q", got, test.want)
			}
			for _, w := range p.Withdrawals {
				if w.Reason.Kind != workload.ReasonPreempted || !strings.Contains(w.Reason.Message, "with priority 9 (policy withinClusterQueue)") {
					t.Errorf("%s is withdrawn for %+v", w.Workload, w.Reason)
				}
			}
			if len(p.Withdrawals) == 0 {
				s.Dequeue("gang-3")
				enqueueWith(s, 4, "queue", 0, 1)
				wantPlan(t, decide(s), "") // they hold what they held
			}
		})
	}
}

// Quota is not taken for a gang that could do nothing with it.
func TestQuotaIsNotTakenBackInVain(t *testing.T) {
	t.Parallel()
	c := preempting(3, quota.Preemption{WithinClusterQueue: quota.LowerPriority})
	c.ProvisioningConfigs[0].ManagedResources = []resource.Name{"google.com/tpu", "nvidia.com/gpu"}
	s := askingState(t, c, nodeOf("a", 8, 0))
	enqueueWith(s, 1, "queue", 0, 2)
	wantPlan(t, decide(s), "ask gang-1 [{workers 2}]")
	s.Enqueue(admission.Waiting{Order: 2, Workload: &workload.Workload{
		ID: "gang-2", Queue: "queue", Priority: 9, PodSets: []workload.PodSet{setOf("head", 1, 100, 0), setOf("workers", 2, 1, 1)},
	}, Tried: [][]workload.PodSetFlavors{{
		{PodSet: "head", Flavors: map[resource.Name]string{"cpu": "default"}},
		{PodSet: "workers", Flavors: map[resource.Name]string{"cpu": "default", "nvidia.com/gpu": "default"}},
	}}})
	p := decide(s)
	wantPlan(t, p, "")
	if len(p.Withdrawals) > 0 {
		t.Errorf("withdrawn is %s, and gang-2 neither starts nor asks", withdrawn(p))
	}
	if why := s.Reason("gang-2"); why.Kind != workload.ReasonQuota {
		t.Errorf("gang-2 waits for %+v, want quota", why)
	}
}

// What is left over of the quota that was taken back goes to the next in line.
func TestWhatIsLeftOfQuotaTakenBackIsFree(t *testing.T) {
	t.Parallel()
	s := askingState(t, preempting(3, quota.Preemption{WithinClusterQueue: quota.LowerPriority}), nodeOf("a", 8, 0))
	enqueueWith(s, 1, "queue", 1, 3)
	wantPlan(t, decide(s), "ask gang-1 [{workers 3}]")
	enqueueWith(s, 2, "queue", 0, 1)
	wantPlan(t, decide(s), "")
	enqueueWith(s, 3, "queue", 9, 2)
	p := decide(s)
	wantPlan(t, p, "ask gang-3 [{workers 2}], ask gang-2 [{workers 1}]")
	if withdrawn(p) != "gang-1" {
		t.Errorf("withdrawn is %q, want gang-1", withdrawn(p))
	}
}

// A gang that fits on nodes is admitted by quota that is held for nodes.
func TestAGangIsAdmittedByQuotaTakenBack(t *testing.T) {
	t.Parallel()
	s := askingState(t, preempting(3, quota.Preemption{WithinClusterQueue: quota.LowerPriority}), nodeOf("a", 8, 2))
	enqueueWith(s, 1, "queue", 0, 3)
	wantPlan(t, decide(s), "ask gang-1 [{workers 1}]")
	enqueueWith(s, 2, "queue", 9, 2)
	p := decide(s)
	wantPlan(t, p, "admit gang-2")
	if withdrawn(p) != "gang-1" {
		t.Errorf("withdrawn is %q, want gang-1", withdrawn(p))
	}
}

// cohort is two queues of two GPUs each that lend to each other.
func cohort(policy quota.Preemption) quota.Config {
	c := preempting(2, policy)
	c.ClusterQueues[0].Cohort = "all"
	other := c.ClusterQueues[0]
	other.Name = "other"
	c.ClusterQueues = append(c.ClusterQueues, other)
	return c
}

// A queue takes back what another one has borrowed for nodes that do not come, also when both
// ask in one decision. What is within the nominal quota stays.
func TestBorrowedQuotaOfAGangThatAsksIsTakenBack(t *testing.T) {
	t.Parallel()
	s := askingState(t, cohort(quota.Preemption{ReclaimWithinCohort: quota.Any}), nodeOf("a", 8, 0))
	enqueueWith(s, 1, "other", 5, 2)
	enqueueWith(s, 2, "other", 5, 1)
	wantPlan(t, decide(s), "ask gang-1 [{workers 2}], ask gang-2 [{workers 1}]")
	enqueueWith(s, 3, "queue", 0, 2)
	p := decide(s)
	wantPlan(t, p, "ask gang-3 [{workers 2}]")
	if withdrawn(p) != "gang-2" {
		t.Errorf("withdrawn is %q, want gang-2", withdrawn(p))
	}
	enqueueWith(s, 4, "queue", 9, 1)
	p = decide(s)
	wantPlan(t, p, "")
	if withdrawn(p) != "" {
		t.Errorf("withdrawn is %q, which is within its nominal quota", withdrawn(p))
	}
}

// A gang that waits behind running gangs takes back, when these end, what another one has got
// for nodes meanwhile.
func TestQuotaTakenMeanwhileIsTakenBackLater(t *testing.T) {
	t.Parallel()
	s := askingState(t, preempting(4, quota.Preemption{WithinClusterQueue: quota.LowerPriority}), nodeOf("a", 8, 2))
	enqueueWith(s, 1, "queue", 10, 2)
	wantPlan(t, admission.Decide(s, start), "admit gang-1")
	enqueueWith(s, 2, "queue", 9, 4)
	enqueueWith(s, 3, "queue", 0, 2)
	p := admission.Decide(s, start.Add(time.Minute))
	wantPlan(t, p, "ask gang-3 [{workers 2}]")
	if want := start.Add(time.Minute + time.Second); !p.NextAt.Equal(want) {
		t.Errorf("the next decision is at %s, want %s", p.NextAt, want)
	}
	wantPlan(t, admission.Decide(s, p.NextAt), "")
	s.Release("gang-1")
	p = admission.Decide(s, start.Add(time.Hour))
	wantPlan(t, p, "ask gang-2 [{workers 2}]")
	if withdrawn(p) != "gang-3" {
		t.Errorf("withdrawn is %q, want gang-3", withdrawn(p))
	}
}
