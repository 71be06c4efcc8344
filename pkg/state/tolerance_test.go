package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// ended is the record with which the gang ended, in what has been written last.
func (s *stage) ended() workload.Record {
	s.Helper()
	for _, r := range s.Flush().Updated {
		if r.Phase.Final() {
			return r
		}
	}
	s.Fatal("the gang has not ended")
	return workload.Record{}
}

// A workload that asks for it is tried again after its objects say that they have
// failed, as often as it says and with its own pause; N+1 failures end it.
func TestFailedAttemptsAreTriedAgainAsOftenAsTheWorkloadAsks(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Requeues: limit(0), BackoffFirst: seconds(500)}, 3)
	s.gang().Life.Tolerance = &workload.Tolerance{Retries: limit(2), RetryFailed: true, Pause: seconds(7)}
	failed := func() {
		s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: s.gang().Attempt, Created: true, Outcome: event.OutcomeFailed, Message: "Job ns/j is Failed"}, s.now, s.now)
	}
	for range 2 {
		s.created(true)
		s.step(time.Hour) // however long it has run
		failed()
		s.is(workload.Evicting, workload.ReasonPodLost)
		failed() // it may be reported twice
		s.released()
		s.is(workload.Queued, workload.ReasonBackoff)
		s.step(7*time.Second - time.Millisecond)
		s.is(workload.Queued, workload.ReasonBackoff)
		s.step(time.Millisecond)
		s.is(workload.Admitted, "")
	}
	s.created(true)
	failed()
	s.Flush()
	s.released()
	if last := s.ended(); last.Phase != workload.Failed || last.Attempt != 3 || !strings.Contains(last.Reason.Message, "failed after 2 requeues: Job ns/j is Failed") {
		t.Errorf("it ended as %s in attempt %d because of %+v", last.Phase, last.Attempt, last.Reason)
	}
}

// A workload that does not ask for it is tried once: its failure is its end.
func TestAFailedAttemptIsTheEndOfOneThatDoesNotAsk(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Requeues: limit(5)}, 3)
	s.created(true)
	s.Flush()
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Outcome: event.OutcomeFailed, Message: "Job ns/j is Failed"}, s.now, s.now)
	if last := s.ended(); last.Phase != workload.Failed || last.Attempt != 1 || last.Reason.Kind != workload.ReasonJobEnded {
		t.Errorf("it ended as %s in attempt %d because of %+v", last.Phase, last.Attempt, last.Reason)
	}
}

// A container that ends with a code after which the workload asks not to be tried
// again ends it, whichever news comes first.
func TestExitCodesEndAWorkload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tolerance workload.Tolerance
		code      int32
		evicting  bool // the failure is known before the code
		ends      bool
	}{
		"a terminal code":               {workload.Tolerance{TerminalExitCodes: []int32{3, 10}}, 10, false, true},
		"another code":                  {workload.Tolerance{TerminalExitCodes: []int32{3, 10}}, 1, false, false},
		"a retryable code":              {workload.Tolerance{RetryableExitCodes: []int32{20}}, 20, false, false},
		"no retryable code":             {workload.Tolerance{RetryableExitCodes: []int32{20}}, 1, false, true},
		"a terminal code that is late":  {workload.Tolerance{TerminalExitCodes: []int32{3}}, 3, true, true},
		"retryable, but also terminal":  {workload.Tolerance{TerminalExitCodes: []int32{3}, RetryableExitCodes: []int32{3}}, 3, false, true},
		"another code, and it was late": {workload.Tolerance{TerminalExitCodes: []int32{3}}, 4, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			c.tolerance.RetryFailed = true
			s.gang().Life.Tolerance = &c.tolerance
			s.created(true)
			if c.evicting {
				s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Outcome: event.OutcomeFailed, Message: "Pod failed"}, s.now, s.now)
			}
			pod := s.pods["headgroup-0"]
			pod.Phase, pod.Ready, pod.ExitCode = "Failed", false, c.code
			s.pods["headgroup-0"] = pod
			s.observe()
			if !c.ends {
				if s.gang().Reason != nil && s.gang().Reason.Kind == workload.ReasonExitCode {
					t.Errorf("it ends because of %+v", s.gang().Reason)
				}
				return
			}
			s.is(workload.Evicting, workload.ReasonExitCode)
			s.Flush()
			s.released()
			if last := s.ended(); last.Phase != workload.Failed || last.Reason.Kind != workload.ReasonExitCode || !strings.Contains(last.Reason.Message, "headgroup-0 ended with exit code") {
				t.Errorf("it ended as %s because of %+v", last.Phase, last.Reason)
			}
		})
	}
}

// The time that a workload gives itself after a loss counts, not that of its start.
func TestALossHasADeadlineOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(1000)}}, 3)
	s.gang().Life.Tolerance = &workload.Tolerance{LossDeadline: seconds(30)}
	s.created(true)
	s.is(workload.Running, "")
	s.loses("workers", "")
	s.step(29 * time.Second)
	s.is(workload.Running, workload.ReasonPodLost)
	s.step(time.Second)
	s.is(workload.Evicting, workload.ReasonPodLost)
}

// Another policy counts at once for who waits, and takes nothing from who runs.
func TestAnotherPolicyApplies(t *testing.T) {
	t.Parallel()
	policy := func(cpu int64) quota.Config {
		return quota.Config{
			Flavors: []quota.Flavor{{Name: "any"}},
			ClusterQueues: []quota.ClusterQueue{{Name: "q", ResourceGroups: []quota.ResourceGroup{{
				CoveredResources: []resource.Name{"cpu"}, Flavors: []quota.FlavorQuotas{{Name: "any", Resources: []quota.ResourceQuota{{Name: "cpu", Nominal: cpu}}}},
			}}}},
		}
	}
	queues := []Queue{{Name: "q", Namespaces: []string{"ns"}}}
	s := newStage(t, workload.Rules{}, 2) // one node is missing
	s.is(workload.Queued, workload.ReasonNeverFits)
	s.ApplyConfiguration(queues, policy(4), s.Version()+1)
	s.node("n2", nil)
	s.step(time.Second)
	if s.is(workload.Queued, workload.ReasonNeverFits); s.gang().Reason.Quota == nil {
		t.Errorf("with nodes enough it waits because of %+v, want the quota", s.gang().Reason)
	}
	if got := s.LiveByQueue()[LocalQueueKey{"ns", "q"}]; got != 1 {
		t.Errorf("%d are in the queue, want 1", got)
	}
	s.ApplyConfiguration(queues, policy(12), s.Version()+1)
	s.step(time.Second)
	s.is(workload.Admitted, "")
	s.created(true)
	s.ApplyConfiguration(queues, policy(1), s.Version()+1)
	s.step(time.Second)
	s.is(workload.Running, "")
}
