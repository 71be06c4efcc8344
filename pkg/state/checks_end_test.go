package state

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

func TestARejectedGangFails(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	c.submitJob("other")
	c.sent()
	c.CheckAnswered(&event.CheckAnswer{Check: "budget", Workload: gangID, Number: 1, Status: workload.CheckRejected, Message: "no money"}, c.now)
	var last *event.WorkloadChanged
	for _, m := range c.Flush().Messages {
		if p, is := m.Payload.(*event.WorkloadChanged); is {
			last = p
		}
	}
	if last == nil || last.Phase != workload.Failed || last.Reason.Kind != workload.ReasonCheckRejected || last.Reason.Message != `AdmissionCheck "budget" rejected it: no money` {
		t.Errorf("the last event is %+v", last)
	}
	c.step(0)
	if e := c.live.Get("other"); !e.checks().Pending() {
		t.Error("the next gang is not put to its checks, although the quota is free")
	}
}

func TestAGangThatRunsIsTakenBackByACheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status workload.CheckStatus
		phase  workload.Phase
	}{"later": {workload.CheckRetry, workload.Queued}, "never": {workload.CheckRejected, workload.Failed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChecking(t, "budget")
			c.check("budget", 1, workload.CheckReady)
			c.created(true)
			c.sent()
			c.check("budget", 1, test.status)
			c.wantPhase(workload.Evicting, "")
			c.wantSent("budget 1 open", "absent")
			c.check("budget", 1, workload.CheckReady)
			c.wantSent("budget 1 open: the workload is evicting and ends")
			c.released()
			c.step(0)
			if got := c.sent(); !slices.Contains(got, "budget 1 closed") {
				t.Errorf("messages are %q, want it closed", got)
			}
			if test.phase == workload.Failed {
				if c.live.Get(gangID) != nil {
					t.Error("the gang is live")
				}
				return
			}
			c.wantPhase(workload.Queued, workload.ReasonBackoff)
			c.step(time.Minute)
			c.wantPhase(workload.Queued, workload.ReasonAdmissionCheck)
			c.wantSent("budget 2 open")
		})
	}
}

func TestWhatEndsChecks(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*checking){
		"cancel": func(c *checking) { c.Cancel(&event.WorkloadCancel{Workload: gangID}, c.now) },
		"hold":   func(c *checking) { c.Hold(&event.WorkloadHold{Workload: gangID, By: "op"}, c.now) },
		"move": func(c *checking) {
			settings := c.Settings()
			c.ApplyConfiguration(append(slices.Clone(settings.Queues), Queue{Name: "plain", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}), settings.Policy, c.version)
			c.MoveToQueue(&event.WorkloadMove{Workload: gangID, Queue: "plain", By: "op"}, c.now)
		},
		"the queue has no checks any more": func(c *checking) {
			settings := c.Settings()
			settings.Policy.ClusterQueues = slices.Clone(settings.Policy.ClusterQueues)
			settings.Policy.ClusterQueues[0].AdmissionChecks = nil
			c.ApplyConfiguration(settings.Queues, settings.Policy, c.version)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChecking(t, "budget")
			c.sent()
			do(c)
			c.step(0)
			if got := c.sent(); !slices.Contains(got, "budget 1 closed") || len(c.checked) != 0 {
				t.Errorf("messages are %q, want it closed; %d are checked", got, len(c.checked))
			}
			c.check("budget", 1, workload.CheckReady)
			if got := c.sent(); len(got) != 1 || !strings.HasPrefix(got[0], "budget 1 closed: ") {
				t.Errorf("a late answer is answered by %q", got)
			}
		})
	}
}

// TestNoGangIsEvictedBeforeTheChecksAgree: a gang for which others have to go is put to its
// checks first.
func TestNoGangIsEvictedBeforeTheChecksAgree(t *testing.T) {
	t.Parallel()
	c := newChecking(t, "budget")
	settings := c.Settings()
	settings.Policy.ClusterQueues = slices.Clone(settings.Policy.ClusterQueues)
	settings.Policy.ClusterQueues[0].Preemption = &quota.Preemption{WithinClusterQueue: quota.LowerPriority}
	c.ApplyConfiguration(settings.Queues, settings.Policy, c.version)
	c.check("budget", 1, workload.CheckReady)
	c.created(true)
	c.step(time.Minute)
	c.sent()
	c.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: "urgent", Queue: "q", Kind: "RayJob", Name: "urgent", Priority: 9, PodSets: []workload.PodSet{podSet("workers", workload.RoleWorker, 2)},
	}}, nil, c.now)
	c.step(0)
	c.wantSent("budget 1 open")
	if why := c.live.Get("urgent").Reason.Message; !strings.Contains(why, "no gang is evicted for it before") {
		t.Errorf("it waits because %q", why)
	}
	c.wantPhase(workload.Running, "")
	c.CheckAnswered(&event.CheckAnswer{Check: "budget", Workload: "urgent", Number: 1, Status: workload.CheckReady}, c.now)
	c.step(0)
	c.wantPhase(workload.Evicting, workload.ReasonPreempted)
}

// TestANewLeaderGoesOnWithChecks in each step.
func TestANewLeaderGoesOnWithChecks(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	c.sent()
	c.replaceLeader()
	c.wantSent() // the requests are in the outbox or the stream
	c.ResendCommands(c.now, func(string) bool { return true })
	c.wantSent("budget 1 open", "licence 1 open")
	c.check("budget", 1, workload.CheckReady)
	c.sent()
	c.replaceLeader()
	c.submitJob("other")
	if why := c.live.Get("other").Reason; why == nil || why.Kind != workload.ReasonQuota {
		t.Errorf("the next gang waits because %+v, want the quota", why)
	}
	c.Cancel(&event.WorkloadCancel{Workload: "other"}, c.now) // it would use the quota during the back-off
	c.sent()
	c.check("licence", 1, workload.CheckRetry)
	c.replaceLeader()
	c.step(59 * time.Second)
	c.wantPhase(workload.Queued, workload.ReasonBackoff)
	c.sent()
	c.step(time.Second)
	if got := c.gang().checks(); got.Number != 2 || !got.Pending() {
		t.Errorf("after the back-off the checks are %+v, want request 2", got)
	}
	c.replaceLeader()
	c.check("budget", 2, workload.CheckReady)
	c.check("licence", 2, workload.CheckReady)
	c.wantPhase(workload.Admitted, "")
	c.replaceLeader()
	c.sent()
	c.ResendCommands(c.now, func(subject string) bool { return strings.HasPrefix(subject, "muster.check.") })
	c.wantSent("budget 2 answered", "licence 2 answered")
	c.check("budget", 2, workload.CheckRejected)
	c.wantPhase(workload.Evicting, workload.ReasonCheckRejected)
}
