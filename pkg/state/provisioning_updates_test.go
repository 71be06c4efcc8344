package state

import (
	"slices"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

const ofRequest = "autoscaling.gke.io/provisioning-request"

// newUpdating is an asker whose pods choose the nodes of their request.
func newUpdating(t *testing.T, template workload.Template) *asker {
	t.Helper()
	a := newAskerQueue(t)
	settings := a.Settings()
	settings.Policy.ProvisioningConfigs = slices.Clone(settings.Policy.ProvisioningConfigs)
	settings.Policy.ProvisioningConfigs[0].Updates = &quota.PodSetUpdates{NodeSelector: []quota.NodeSelectorUpdate{{Key: ofRequest, Detail: "ResizeRequestName"}}}
	a.ApplyConfiguration(settings.Queues, settings.Policy, a.version)
	a.node("free", nil) // for one of the two workers
	a.submit(template)
	a.wantSent("provision " + requestOne)
	return a
}

// provisioned answers a request with the labels of its nodes.
func (a *asker) provisioned(request string, selector map[string]string) {
	a.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: a.gang().Attempt, Provision: &event.ProvisionStatus{
		Name: request, State: event.RequestProvisioned, Created: true, NodeSelector: selector,
	}}, a.now, a.now)
	a.step(0)
}

// As in Kueue, all pods that nodes were asked for go to the nodes of the request, and so do those of
// their pod set that had a place. Each attempt has its own.
func TestPodsChooseTheNodesOfTheirRequest(t *testing.T) {
	t.Parallel()
	a := newUpdating(t, workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}})
	if p := a.gang().Provisioning; !slices.Equal(p.Pods, []workload.PodCount{{PodSet: "workers", Pods: 2}}) || p.NodeLabels[ofRequest] != "ResizeRequestName" {
		t.Errorf("the request is %+v, want all workers asked for, by the label", p)
	}
	a.node("other", nil)
	a.provisioned(requestOne, map[string]string{ofRequest: "r1", "not-wanted": "x"})
	a.wantPhase(workload.Queued, "")
	a.replaceLeader()
	for _, name := range []string{"n0", "n1"} {
		a.node(name, func(n *capacity.Node) { n.Labels = map[string]string{ofRequest: "r1"} })
	}
	a.step(0)
	a.wantPhase(workload.Admitted, "")
	for _, p := range a.gang().Placements {
		if p.Node != "n0" && p.Node != "n1" {
			t.Errorf("its places are %+v, want the nodes of the request", a.gang().Placements)
		}
	}
	terms := a.command(a.gang(), event.Present).Terms
	if len(terms) == 0 || len(terms[0].NodeSelector) != 1 || terms[0].NodeSelector[ofRequest] != "r1" {
		t.Errorf("the command has the terms %+v", terms)
	}
	a.created(true)
	a.evictNow(a.gang(), &workload.Reason{Kind: workload.ReasonDrained, Message: "drained"}, a.now)
	a.released()
	if set := a.gang().PodSets[0].Template; set.NodeSelector != nil {
		t.Errorf("the next attempt has %+v, want the pods as they were submitted", set)
	}
}

// A request that ends takes back what it added, and one whose label contradicts the pods fails.
func TestARequestThatEndsTakesBackItsLabels(t *testing.T) {
	t.Parallel()
	a := newUpdating(t, workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}})
	a.provisioned(requestOne, map[string]string{ofRequest: "r1"})
	if got := a.gang().PodSets[0].Template.NodeSelector[ofRequest]; got != "r1" {
		t.Errorf("the pods choose %q, want r1", got)
	}
	a.answers(requestOne, event.RequestRevoked)
	a.wantPhase(workload.Queued, workload.ReasonBackoff)
	if got := a.gang().PodSets[0].Template.NodeSelector; got != nil {
		t.Errorf("after the request the pods choose %v", got)
	}

	a = newUpdating(t, workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}, NodeSelector: map[string]string{ofRequest: "mine"}})
	a.provisioned(requestOne, map[string]string{ofRequest: "r1"})
	a.wantReason(workload.ReasonBackoff, `podSetUpdates: nodeSelector autoscaling.gke.io/provisioning-request of pod set "workers" is "mine" already, and the answer has "r1"`)
}

// Without the detail the pods go anywhere, as in Kueue.
func TestARequestWithoutTheDetailChoosesNoNodes(t *testing.T) {
	t.Parallel()
	a := newUpdating(t, workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}})
	a.nodesCome()
	a.provisioned(requestOne, nil)
	a.wantPhase(workload.Admitted, "")
}
