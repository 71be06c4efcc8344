package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// checking is a state with a queue of 8 CPUs whose gangs two AdmissionChecks are asked about,
// two nodes, and a gang of two workers that each fill a node.
type checking struct{ *asker }

func newChecking(t *testing.T, checks ...string) *checking {
	t.Helper()
	if len(checks) == 0 {
		checks = []string{"budget", "licence"}
	}
	c := &checking{&asker{&stage{T: t, now: time.Unix(1_000_000, 0), pods: map[string]event.GangPod{}}}}
	policy := quota.Config{
		Flavors: []quota.Flavor{{Name: "default"}},
		ClusterQueues: []quota.ClusterQueue{{
			Name: "q", AdmissionChecks: checks, ResourceGroups: []quota.ResourceGroup{{
				CoveredResources: []resource.Name{"cpu"},
				Flavors:          []quota.FlavorQuotas{{Name: "default", Resources: []quota.ResourceQuota{{Name: "cpu", Nominal: 8}}}},
			}},
		}},
		LocalQueues: []quota.LocalQueue{{Namespace: "ns", Name: "q", ClusterQueue: "q"}},
	}
	for _, name := range checks {
		policy.AdmissionChecks = append(policy.AdmissionChecks, quota.AdmissionCheck{
			Name: name, ControllerName: "example.com/" + name, Parameters: &quota.CheckParameters{APIGroup: "example.com", Kind: "Account", Name: "team-a"},
		})
	}
	c.State = New(1, Stored{
		MaxEvent: 1 << 20, Queues: []Queue{{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}}, Policy: policy,
	})
	c.nodesCome()
	c.submitJob(gangID)
	return c
}

func (c *checking) submitJob(id workload.ID) {
	c.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: id, Queue: "q", Kind: "RayJob", Name: "job-" + string(id), PodSets: []workload.PodSet{podSet("workers", workload.RoleWorker, 2)},
	}}, nil, c.now)
	c.step(0)
}

// sent lists the messages since the last call: commands by their state, and what checks are
// asked, with the refusal of an answer.
func (c *checking) sent() (messages []string) {
	for _, m := range c.Flush().Messages {
		switch p := m.Payload.(type) {
		case *event.GangCommand:
			messages = append(messages, p.State)
		case *event.CheckWanted:
			text := fmt.Sprintf("%s %d %s", p.Check, p.Number, p.State)
			if p.Answer != nil && p.Answer.Refused != "" {
				text += ": " + p.Answer.Refused
			}
			if m.Subject != event.CheckSubject(p.Check, p.Workload) {
				text += " on " + m.Subject
			}
			messages = append(messages, text)
		}
	}
	return messages
}

func (c *checking) wantSent(want ...string) {
	c.Helper()
	if got := c.sent(); !slices.Equal(got, want) {
		c.Errorf("messages are %q, want %q", got, want)
	}
}

func (c *checking) check(name string, number int, status workload.CheckStatus, change ...func(*event.CheckAnswer)) {
	c.Helper()
	answer := &event.CheckAnswer{Check: name, Workload: gangID, Number: number, Status: status, Message: "said " + name}
	for _, f := range change {
		f(answer)
	}
	c.CheckAnswered(answer, c.now)
	c.step(0)
}

func TestAGangStartsWhenItsChecksAgree(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	c.wantPhase(workload.Queued, workload.ReasonAdmissionCheck)
	if got, want := c.gang().Reason.Message, `AdmissionCheck "budget" has not answered since 1970-01-12T13:46:40Z; AdmissionCheck "licence" has not answered since 1970-01-12T13:46:40Z; its quota is reserved`; got != want {
		t.Errorf("it waits because %q, want %q", got, want)
	}
	asked := c.Flush().Messages
	i := slices.IndexFunc(asked, func(m Message) bool { return m.Subject == event.CheckSubject("budget", gangID) })
	if i < 0 {
		t.Fatalf("budget is not asked: %+v", asked)
	}
	w := asked[i].Payload.(*event.CheckWanted)
	if w.ControllerName != "example.com/budget" || w.Parameters.Name != "team-a" || !w.QuotaReserved || w.State != event.CheckOpen || len(w.PodSets) != 1 ||
		w.PodSets[0].Count != 2 || w.PodSets[0].Requests["cpu"] != 4 || w.PodSets[0].Flavors["cpu"] != "default" {
		t.Errorf("budget is asked %+v", w)
	}
	c.submitJob("other")
	if why := c.live.Get("other").Reason; why == nil || why.Kind != workload.ReasonQuota {
		t.Errorf("the next gang waits because %+v, want the quota: the first holds it", why)
	}
	c.sent()

	c.check("budget", 1, workload.CheckPending)
	c.wantSent("budget 1 open")
	if got := c.gang().Reason.Message; !strings.Contains(got, `AdmissionCheck "budget" is pending since 1970-01-12T13:46:40Z: said budget; AdmissionCheck "licence" has not answered`) {
		t.Errorf("it waits because %q", got)
	}
	c.check("budget", 1, workload.CheckReady)
	c.wantSent("budget 1 answered")
	c.wantPhase(workload.Queued, workload.ReasonAdmissionCheck)
	c.check("licence", 1, workload.CheckReady)
	c.wantSent("licence 1 answered", "present")
	c.wantPhase(workload.Admitted, "")
	c.Cancel(&event.WorkloadCancel{Workload: gangID}, c.now)
	c.wantSent("absent")
	c.released()
	c.step(0)
	if got := c.sent(); !slices.Contains(got, "budget 1 closed") || !slices.Contains(got, "licence 1 closed") || len(c.checked) != 1 {
		t.Errorf("at its end messages are %q, and %d workloads are checked; want both closed, and the other gang", got, len(c.checked))
	}
}

func TestAnswersThatDoNotCount(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for name, test := range map[string]struct {
		number int
		status workload.CheckStatus
		change func(*event.CheckAnswer)
		want   string
	}{
		"of another request":    {2, workload.CheckReady, nil, "budget 1 open: it answers request 2, and the present one is 1"},
		"of no request":         {0, workload.CheckReady, nil, "budget 1 open: number 0; want that of the request"},
		"of an unknown status":  {1, "Fine", nil, `budget 1 open: status "Fine"; want Pending, Ready, Retry or Rejected`},
		"of another check":      {1, workload.CheckReady, func(a *event.CheckAnswer) { a.Check = "other" }, "other 1 closed: the workload is not put to this check now"},
		"about another":         {1, workload.CheckReady, func(a *event.CheckAnswer) { a.Workload = "gone" }, "budget 1 closed: the workload has ended"},
		"with a long message":   {1, workload.CheckPending, func(a *event.CheckAnswer) { a.Message = long }, "budget 1 open: message has 2000 bytes; want at most 1024"},
		"with a long wait":      {1, workload.CheckRetry, func(a *event.CheckAnswer) { a.RetryAfterSeconds = 1 << 40 }, "budget 1 open: retryAfterSeconds 1099511627776; want 0 to 2592000"},
		"with an unknown set":   {1, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "nope"}), `budget 1 open: podSetUpdates are for "nope", and the workload has no pod set of that name`},
		"with Muster's label":   {1, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "workers", Labels: map[string]string{"muster.dev/workload": "w"}}), `budget 1 open: labels of pod set "workers": "muster.dev/workload" is set by Muster or KubeRay`},
		"with no value":         {1, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "workers", NodeSelector: map[string]string{"a": "b c"}}), `budget 1 open: nodeSelector of pod set "workers": "b c" is no value of "a"`},
		"with a wrong operator": {1, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "workers", Tolerations: []workload.Toleration{{Key: "a", Operator: "Like"}}}), `budget 1 open: tolerations of pod set "workers": operator "Like"; want Equal or Exists`},
		"with updates of a retry": {1, workload.CheckRetry, updates(workload.PodSetUpdate{PodSet: "workers"}),
			"budget 1 open: podSetUpdates are for status Ready, and that of this answer is Retry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChecking(t, "budget")
			c.sent()
			before := c.gang().Reason.Message
			var changes []func(*event.CheckAnswer)
			if test.change != nil {
				changes = append(changes, test.change)
			}
			c.check("budget", test.number, test.status, changes...)
			c.wantSent(test.want)
			c.wantPhase(workload.Queued, workload.ReasonAdmissionCheck)
			if after := c.gang().Reason.Message; after != before {
				t.Errorf("the reason became %q", after)
			}
		})
	}
}

func updates(u ...workload.PodSetUpdate) func(*event.CheckAnswer) {
	return func(a *event.CheckAnswer) { a.PodSetUpdates = u }
}

func TestTheSameAnswerAgainChangesNothing(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	for _, status := range []workload.CheckStatus{workload.CheckPending, workload.CheckReady} {
		c.check("budget", 1, status)
		c.sent()
		c.check("budget", 1, status)
		c.wantSent()
	}
	c.check("budget", 1, workload.CheckPending)
	c.wantSent("budget 1 answered: the check is Ready already; only Retry or Rejected can withdraw that")
	updates := func(value string) func(*event.CheckAnswer) {
		return func(a *event.CheckAnswer) {
			a.PodSetUpdates = []workload.PodSetUpdate{{PodSet: "workers", Labels: map[string]string{"cost-centre": value}, NodeSelector: map[string]string{"pool": "booked"}}}
		}
	}
	c = newChecking(t)
	c.check("budget", 1, workload.CheckReady, updates("first"))
	c.sent()
	c.check("budget", 1, workload.CheckReady, updates("first"))
	c.wantSent()
	c.check("budget", 1, workload.CheckReady, updates("second"))
	c.wantSent("budget 1 answered: the check is Ready already; answer Retry first to change its podSetUpdates")
}

func TestACheckThatWantsToBeAskedLater(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after int64
		waits []time.Duration
	}{
		"after its own time": {7, []time.Duration{7 * time.Second, 7 * time.Second}},
		"without a time":     {0, []time.Duration{time.Minute, 2 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChecking(t)
			c.check("licence", 1, workload.CheckReady)
			c.sent()
			for i, wait := range test.waits {
				c.check("budget", i+1, workload.CheckRetry, func(a *event.CheckAnswer) { a.RetryAfterSeconds = test.after })
				c.wantPhase(workload.Queued, workload.ReasonBackoff)
				number := i + 1
				c.wantSent(fmt.Sprintf("budget %d open", number), fmt.Sprintf("budget %d closed", number), fmt.Sprintf("licence %d closed", number))
				if why := c.gang().Reason.Message; !strings.Contains(why, `AdmissionCheck "budget" asks to be retried later: said budget`) {
					t.Errorf("it waits because %q", why)
				}
				c.step(wait - time.Second)
				c.wantSent()
				c.step(time.Second)
				c.wantSent(fmt.Sprintf("budget %d open", number+1), fmt.Sprintf("licence %d open", number+1)) // licence, too
			}
		})
	}
}

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

func TestACheckAddsToThePods(t *testing.T) {
	t.Parallel()
	c := newChecking(t)
	c.node("special", func(n *capacity.Node) {
		n.Labels = map[string]string{"pool": "booked"}
		n.Taints = []capacity.Taint{{Key: "booked", Value: "team", Effect: "NoSchedule"}}
		n.Allocatable = resource.List{"cpu": 8, "pods": 10}
	})
	update := workload.PodSetUpdate{
		PodSet: "workers", Labels: map[string]string{"cost": "a"}, Annotations: map[string]string{"booking": "7"}, NodeSelector: map[string]string{"pool": "booked"},
		Tolerations: []workload.Toleration{{Key: "booked", Value: "team", Effect: "NoSchedule"}},
	}
	c.check("budget", 1, workload.CheckReady, updates(update))
	c.sent()
	c.check("licence", 1, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "workers", NodeSelector: map[string]string{"pool": "other"}}))
	c.wantSent(`licence 1 open: podSetUpdates: nodeSelector pool of pod set "workers" is "booked" already, and the answer has "other"`)
	c.replaceLeader() // what was answered is in the ledger
	c.check("licence", 1, workload.CheckReady, updates(workload.PodSetUpdate{PodSet: "workers", Labels: map[string]string{"cost": "a"}}))
	c.wantPhase(workload.Admitted, "")
	if places := c.gang().Placements; len(places) != 1 || places[0].Node != "special" {
		t.Errorf("its places are %+v, want the booked node", places)
	}
	terms := c.command(c.gang(), event.Present).Terms
	if len(terms) == 0 || terms[0].Labels["cost"] != "a" || terms[0].Annotations["booking"] != "7" || terms[0].NodeSelector["pool"] != "booked" || len(terms[0].Tolerations) != 1 {
		t.Errorf("the command has the terms %+v", terms)
	}
	c.evictNow(c.gang(), &workload.Reason{Kind: workload.ReasonDrained, Message: "drained"}, c.now)
	c.released()
	if set := c.gang().PodSets[0].Template; set.NodeSelector != nil || set.Tolerations != nil {
		t.Errorf("the next attempt has %+v, want the pods as they were submitted", set)
	}
}

// TestAWithdrawnCheckTakesBackWhatItAdded: what the next answer adds does not contradict it.
func TestAWithdrawnCheckTakesBackWhatItAdded(t *testing.T) {
	t.Parallel()
	c := newChecking(t, "budget")
	zone := func(name string) func(*event.CheckAnswer) {
		return updates(workload.PodSetUpdate{PodSet: "workers", NodeSelector: map[string]string{"zone": name}})
	}
	c.check("budget", 1, workload.CheckReady, zone("a"))
	c.check("budget", 1, workload.CheckRetry)
	if got := c.gang().PodSets[0].Template.NodeSelector; got != nil {
		t.Errorf("the pods have the selector %v, want that of the submission", got)
	}
	c.step(time.Minute)
	c.sent()
	c.check("budget", 2, workload.CheckReady, zone("b"))
	if got := c.gang().PodSets[0].Template.NodeSelector["zone"]; got != "b" {
		t.Errorf("the pods have zone %q, want b", got)
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
