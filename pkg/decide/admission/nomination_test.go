package admission_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// preemptor returns a state in which w waits in queue a until x is gone from one of two
// nodes.
func preemptor(t *testing.T, policy quota.Config, w admission.Waiting) *admission.State {
	t.Helper()
	s := admission.NewState(treeOf(t, policy))
	s.SetNode(nodeOf("one", 8, 4))
	s.SetNode(nodeOf("two", 8, 4))
	gang := func(name, queue string, priority int32, gpus int) *workload.Workload {
		return &workload.Workload{ID: workload.ID(name), Queue: queue, Priority: priority, PodSets: []workload.PodSet{setOf("workers", gpus, 0, 1)}}
	}
	s.Start(admission.Started{
		Workload: gang("x", "a", 0, 4), Order: 0, Cluster: "c", Terminating: true, Admitted: start,
		Placements: []workload.Placement{{PodSet: "workers", Node: "one", Pods: 4}},
	})
	w.Workload, w.Order, w.Nominated, w.Reported = gang("w", "a", 5, 8), 2, true, true
	s.Enqueue(w)
	return s
}

func nominationPolicy(t *testing.T) quota.Config {
	return gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`), gpuQueue("b", -1, ""))
}

// The clock of a new leader may be behind that of the one before, by which a back-off
// was over when gangs were evicted for a workload.
func TestANominationSurvivesAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	s := preemptor(t, nominationPolicy(t), admission.Waiting{NotBefore: start.Add(time.Hour)})
	enter(t, s, 1, "thief b 9 4")
	if plan := admission.Decide(s, start.Add(time.Minute)); len(plan.Admissions) != 0 || s.Reason("w").Kind != workload.ReasonWaitingForEviction {
		t.Fatalf("the plan is %+v and w waits because of %+v", plan, s.Reason("w"))
	}
	s.Release("x")
	if plan := admission.Decide(s, start.Add(time.Minute)); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "w" {
		t.Errorf("when the victim is gone the plan is %+v", plan)
	}
}

// A gang whose nomination the new leader does not find gets another reason.
func TestANominationThatANewTermDoesNotFindIsReported(t *testing.T) {
	t.Parallel()
	held := nominationPolicy(t)
	held.ClusterQueues[0].StopPolicy = quota.Hold
	for name, c := range map[string]struct {
		policy quota.Config
		lose   string
		want   workload.ReasonKind
	}{
		"its queue is held": {held, "", workload.ReasonHeld},
		"a node is lost":    {nominationPolicy(t), "two", workload.ReasonNeverFits},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := preemptor(t, c.policy, admission.Waiting{})
			s.RemoveNode(admission.NodeKey{Cluster: "c", Name: c.lose})
			wantReasonOnce(t, admission.Decide(s, start.Add(time.Minute)), c.want)
			if plan := admission.Decide(s, start.Add(2*time.Minute)); len(plan.Waits) != 0 {
				t.Errorf("its reason is reported a second time: %+v", plan.Waits)
			}
		})
	}
}

// A nomination that ends without a start is reported as over, although its gang is behind
// another one of its class, which no decision has tried again.
func TestANominationThatIsOverIsReported(t *testing.T) {
	t.Parallel()
	s := preemptor(t, nominationPolicy(t), admission.Waiting{})
	admission.Decide(s, start.Add(time.Minute))
	if s.Reason("w").Kind != workload.ReasonWaitingForEviction {
		t.Fatalf("w waits because of %+v", s.Reason("w"))
	}
	enter(t, s, 1, "first a 5 8")
	admission.Decide(s, start.Add(2*time.Minute))
	s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "two"})
	s.Release("x")
	wantReasonOnce(t, admission.Decide(s, start.Add(3*time.Minute)), workload.ReasonNeverFits)
}

// wantReasonOnce wants w to get a reason, once.
func wantReasonOnce(t *testing.T, plan admission.Plan, want workload.ReasonKind) {
	t.Helper()
	var kinds []workload.ReasonKind
	for _, wait := range plan.Waits {
		if wait.Workload == "w" {
			kinds = append(kinds, wait.Reason.Kind)
		}
	}
	if len(kinds) != 1 || kinds[0] != want {
		t.Errorf("reasons of w: %v, want %s once; the plan is %+v", kinds, want, plan)
	}
}
