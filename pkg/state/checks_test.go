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
