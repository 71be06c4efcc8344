package state

import (
	"encoding/json"
	"fmt"
	"regexp"
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

// asker is a state with a queue that asks for nodes, a node without room, and a gang of two
// workers that each fill a node.
type asker struct{ *stage }

const requestOne, requestTwo = "rayjob-job-50e72-nodes-1", "rayjob-job-50e72-nodes-2"

func newAsker(t *testing.T) *asker {
	t.Helper()
	a := newAskerQueue(t)
	a.submit(workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}})
	return a
}

// submit submits a gang of two such workers.
func (a *asker) submit(template workload.Template) {
	a.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: gangID, Queue: "q", Namespace: "ns", Kind: "RayJob", Name: "job",
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 2, Template: template}},
	}}, nil, a.now)
	a.step(0)
}

// newAskerQueue is an asker before its gang comes.
func newAskerQueue(t *testing.T) *asker {
	t.Helper()
	a := &asker{&stage{T: t, now: time.Unix(1_000_000, 0), pods: map[string]event.GangPod{}}}
	limit := int64(1)
	a.State = New(1, Stored{
		MaxEvent: 1 << 20, Queues: []Queue{{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}},
		Policy: quota.Config{
			Flavors: []quota.Flavor{{Name: "default"}},
			ClusterQueues: []quota.ClusterQueue{{
				Name: "q", AdmissionChecks: []string{"nodes"}, ResourceGroups: []quota.ResourceGroup{{
					CoveredResources: []resource.Name{"cpu"},
					Flavors:          []quota.FlavorQuotas{{Name: "default", Resources: []quota.ResourceQuota{{Name: "cpu", Nominal: 8}}}},
				}},
			}},
			LocalQueues: []quota.LocalQueue{{Namespace: "ns", Name: "q", ClusterQueue: "q"}},
			AdmissionChecks: []quota.AdmissionCheck{{
				Name: "nodes", ControllerName: quota.ProvisioningController,
				Parameters: &quota.CheckParameters{APIGroup: "kueue.x-k8s.io", Kind: "ProvisioningRequestConfig", Name: "config"},
			}},
			ProvisioningConfigs: []quota.ProvisioningConfig{{
				Name: "config", Class: "queued-provisioning.gke.io", Parameters: map[string]string{"maxRunDurationSeconds": "60"}, MergePolicy: workload.IdenticalScheduling,
				Retry: &quota.RetryStrategy{LimitCount: &limit},
			}},
		},
	})
	a.node("full", func(n *capacity.Node) { n.Allocatable = resource.List{"cpu": 1, "pods": 10} })
	return a
}

// answers reports what became of a request.
func (a *asker) answers(request, state string) {
	e := a.gang()
	a.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: e.Attempt, Provision: &event.ProvisionStatus{
		Name: request, State: state, Message: "said the autoscaler", Created: true,
	}}, a.now, a.now)
	a.step(0)
}

// sent lists the commands since the last call: the state, and the request in it.
func (a *asker) sent() (commands []string) {
	for _, m := range a.Flush().Messages {
		if c, is := m.Payload.(*event.GangCommand); is {
			text := c.State
			if c.Provision != nil {
				text += " " + c.Provision.Name
			}
			commands = append(commands, text)
		}
	}
	return commands
}

func (a *asker) wantSent(want ...string) {
	a.Helper()
	if got := a.sent(); !slices.Equal(got, want) {
		a.Errorf("commands are %q, want %q", got, want)
	}
}

func (a *asker) wantPhase(phase workload.Phase, kind workload.ReasonKind) {
	a.Helper()
	e := a.gang()
	if e.Phase != phase || kind != "" && (e.Reason == nil || e.Reason.Kind != kind) {
		a.Errorf("the gang is %s with %+v, want %s with %s", e.Phase, e.Reason, phase, kind)
	}
}

func (a *asker) nodesCome() {
	a.node("n0", nil)
	a.node("n1", nil)
}

func TestAGangAsksAndStartsOnItsNodes(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.wantPhase(workload.Queued, workload.ReasonProvisioning)
	p := a.gang().Provisioning
	if p == nil || p.Number != 1 || p.Class != "queued-provisioning.gke.io" || p.Parameters["maxRunDurationSeconds"] != "60" || p.Merge != workload.IdenticalScheduling ||
		!slices.Equal(p.Pods, []workload.PodCount{{PodSet: "workers", Pods: 2}}) {
		t.Errorf("the record has the request %+v", p)
	}
	a.wantSent("provision " + requestOne)
	a.answers(requestOne, event.RequestAccepted)
	a.nodesCome()
	a.step(time.Second)
	a.wantPhase(workload.Queued, workload.ReasonProvisioning)
	a.wantSent()
	a.answers("another", event.RequestProvisioned) // of no request of this gang
	a.wantPhase(workload.Queued, workload.ReasonProvisioning)
	a.answers(requestOne, event.RequestProvisioned)
	a.wantPhase(workload.Admitted, "")
	a.wantSent("present " + requestOne)
	for _, state := range []string{event.RequestExpired, event.RequestRevoked, event.RequestFailed, event.RequestGone} {
		a.answers(requestOne, state) // nothing: it has its places
		a.wantPhase(workload.Admitted, "")
		a.wantSent()
	}
}

func TestWhatEndsARequestBeforeTheAdmission(t *testing.T) {
	t.Parallel()
	for _, state := range []string{event.RequestFailed, event.RequestExpired, event.RequestRevoked, event.RequestGone} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			a := newAsker(t)
			a.sent()
			a.answers(requestOne, state)
			a.wantPhase(workload.Queued, workload.ReasonBackoff)
			a.wantSent("forgotten " + requestOne)
			if !strings.Contains(a.gang().Reason.Message, "said the autoscaler") {
				t.Errorf("the reason is %q, want the autoscaler's words in it", a.gang().Reason.Message)
			}
			a.step(59 * time.Second)
			a.wantSent()
			a.answers(requestOne, state) // once more: nothing
			a.wantSent()
			a.step(time.Second)
			a.wantSent("provision " + requestTwo)
			a.answers(requestTwo, state)
			a.wantSent("forgotten " + requestTwo)
			if a.live.Get(gangID) != nil {
				t.Error("the gang is live after its last retry")
			}
		})
	}
}

func TestNodesThatDoNotHoldTheGangAreNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.sent()
	a.node("n0", nil) // one of two
	a.answers(requestOne, event.RequestProvisioned)
	a.wantPhase(workload.Queued, workload.ReasonFit)
	a.step(settleProvisioned - time.Second)
	a.wantSent()
	a.step(time.Second)
	a.wantPhase(workload.Queued, workload.ReasonBackoff)
	a.wantSent("forgotten " + requestOne)
}

func TestACancelledGangLeavesNoRequest(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.sent()
	a.Cancel(&event.WorkloadCancel{Workload: gangID}, a.now)
	a.wantSent("forgotten " + requestOne)
	if a.live.Get(gangID) != nil || len(a.asking) > 0 {
		t.Error("the gang or its request is still there")
	}
}

func TestAMovedGangLeavesItsRequest(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.sent()
	settings := a.Settings()
	settings.Queues = append(slices.Clone(settings.Queues), Queue{Name: "plain", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO})
	a.ApplyConfiguration(settings.Queues, settings.Policy, a.version)
	a.MoveToQueue(&event.WorkloadMove{Workload: gangID, Queue: "plain", By: "op"}, a.now)
	a.step(0)
	a.wantSent("forgotten " + requestOne)
	a.wantPhase(workload.Queued, workload.ReasonNeverFits)
	a.nodesCome()
	a.step(0)
	a.wantPhase(workload.Admitted, "")
}

func TestAQueueThatLosesItsCheckTakesRequestsBack(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.sent()
	settings := a.Settings()
	settings.Policy.ClusterQueues = slices.Clone(settings.Policy.ClusterQueues)
	settings.Policy.ClusterQueues[0].AdmissionChecks = nil
	a.ApplyConfiguration(settings.Queues, settings.Policy, a.version)
	a.step(0)
	a.wantSent("forgotten " + requestOne)
	a.wantPhase(workload.Queued, workload.ReasonNeverFits)
}

// A request in a cluster that has left is withdrawn, and the gang waits for places elsewhere.
func TestARequestInAClusterThatHasLeftEnds(t *testing.T) {
	t.Parallel()
	for _, forced := range []bool{false, true} {
		t.Run(fmt.Sprintf("forced %t", forced), func(t *testing.T) {
			t.Parallel()
			a := newAsker(t)
			a.wantSent("provision " + requestOne)
			policy := a.policy
			policy.ClusterCordons = []quota.ClusterCordon{{Name: "c", Since: a.now, By: "ann", Drain: true, Left: true, Forced: forced}}
			a.ApplyConfiguration([]Queue{a.queues["q"]}, policy, a.Version()+1)
			a.step(time.Second)
			a.wantSent("forgotten " + requestOne)
			if hasRequest(a.gang()) {
				t.Errorf("the gang has the request %+v", a.gang().Provisioning)
			}
			a.step(time.Minute)
			a.wantSent()
			for i := range 2 {
				a.seq++
				a.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: a.seq}, Node: capacity.Node{
					Cluster: "d", Name: fmt.Sprintf("n%d", i), Ready: true, Allocatable: resource.List{"cpu": 1, "pods": 10},
				}}, a.now)
			}
			a.step(time.Second)
			if p := a.gang().Provisioning; !hasRequest(a.gang()) || p.Cluster != "d" {
				t.Errorf("the gang has the request %+v, want one in d", p)
			}
		})
	}
}

// A name that is too long is cut to one that an API server takes, wherever the cut is.
func TestALongRequestNameIsValid(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	for length := 200; length <= 247; length++ {
		w := &workload.Workload{ID: gangID, Kind: "RayJob", Name: strings.Repeat("a", length) + ".b-c"}
		name := requestName(w, "nodes."+strings.Repeat("c", 60), 1)
		if len(name) > maxRequestName || !valid.MatchString(name) {
			t.Errorf("the name %q of a request is none that an API server takes", name)
		}
	}
}

// Nodes are asked for in a cluster of which the watcher has listed no node: of a new cluster, or
// before the next leader.
func TestNodesAreAskedForInAnEmptyCluster(t *testing.T) {
	t.Parallel()
	a := newAskerQueue(t)
	settings := a.Settings()
	a.State = New(2, Stored{MaxEvent: 1 << 20, Queues: settings.Queues, Policy: settings.Policy})
	a.submit(workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}})
	a.wantPhase(workload.Queued, workload.ReasonNoNodes)
	a.Synced(&event.CapacitySynced{Version: event.Version{Session: 1, Seq: 1}, Cluster: "c"}, a.now)
	a.step(0)
	a.wantSent("provision " + requestOne)
}

// A gang whose quota another one takes back leaves no request, and asks by the next number when
// it has quota again. That is no failure.
func TestAGangThatGivesWayLeavesNoRequest(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.wantSent("provision " + requestOne)
	settings := a.Settings()
	settings.Policy.ClusterQueues = slices.Clone(settings.Policy.ClusterQueues)
	settings.Policy.ClusterQueues[0].Preemption = &quota.Preemption{WithinClusterQueue: quota.LowerPriority}
	a.ApplyConfiguration(settings.Queues, settings.Policy, a.version)
	a.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: "urgent", Queue: "q", Namespace: "ns", Kind: "RayJob", Name: "urgent", Priority: 9,
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 5, "pods": 1}}}},
	}}, nil, a.now)
	a.step(time.Second)
	if sent := a.sent(); len(sent) != 2 || sent[0] != "forgotten "+requestOne || !strings.HasPrefix(sent[1], "provision rayjob-urgent-") {
		t.Errorf("commands are %q, want the request forgotten and the urgent gang's made", sent)
	}
	if p := a.gang().Provisioning; hasRequest(a.gang()) || p.Failures != 0 {
		t.Errorf("the gang has the request %+v", p)
	}
	if why := a.gang().Reason; why.Kind != workload.ReasonPreempted || why.Preemption.Preemptor != "urgent" {
		t.Errorf("the gang waits for %+v", why)
	}
	a.step(time.Second)
	a.wantPhase(workload.Queued, workload.ReasonQuota)
	a.wantSent()
	a.Cancel(&event.WorkloadCancel{Workload: "urgent"}, a.now)
	a.sent()
	a.step(time.Second)
	a.wantSent("provision " + requestTwo)
}

// The quota of a gang is free while it backs off.
func TestQuotaIsFreeDuringTheBackOff(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: "second", Queue: "q", Namespace: "ns", Kind: "RayJob", Name: "second",
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 2, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, a.now)
	a.step(time.Second)
	a.wantSent("provision " + requestOne) // all of the quota
	a.answers(requestOne, event.RequestFailed)
	a.wantPhase(workload.Queued, workload.ReasonBackoff)
	if sent := a.sent(); len(sent) != 2 || sent[0] != "forgotten "+requestOne || !strings.HasPrefix(sent[1], "provision rayjob-second-") {
		t.Errorf("commands are %q, want the request forgotten and that of the second gang made", sent)
	}
	a.step(time.Minute)
	a.wantPhase(workload.Queued, workload.ReasonQuota)
	a.wantSent()
}

// A request in a cluster that is cordoned ends after five minutes, without a failure, and the
// gang asks elsewhere.
func TestARequestInAClusterThatIsCordonedEnds(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	a.wantSent("provision " + requestOne)
	a.now = a.now.Add(time.Hour)
	policy := a.policy
	policy.ClusterCordons = []quota.ClusterCordon{{Name: "c", Since: a.now, By: "ann"}}
	a.ApplyConfiguration([]Queue{a.queues["q"]}, policy, a.Version()+1)
	a.step(settleProvisioned - time.Second)
	a.wantSent()
	a.step(time.Second)
	a.wantSent("forgotten " + requestOne)
	if p := a.gang().Provisioning; p.Open || p.Failures != 0 {
		t.Errorf("the gang has the request %+v, want none, and no failure", p)
	}
	a.seq++
	a.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: a.seq}, Node: capacity.Node{
		Cluster: "d", Name: "n0", Ready: true, Allocatable: resource.List{"cpu": 1, "pods": 10},
	}}, a.now)
	a.step(time.Second)
	if p := a.gang().Provisioning; !hasRequest(a.gang()) || p.Cluster != "d" {
		t.Errorf("the gang has the request %+v, want one in d", p)
	}
}
