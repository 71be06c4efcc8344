package observed

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func chainsOf(t *testing.T, p *Cache, id workload.ID) map[string]event.PodChain {
	t.Helper()
	payload, _ := p.Observation(Key{Gang: id}, event.Version{})
	observed := payload.(*event.GangObserved)
	of := map[string]event.PodChain{}
	for _, pod := range observed.Pods {
		if pod.Chain < 1 || pod.Chain > len(observed.Chains) {
			t.Fatalf("pod %s has chain %d of %d", pod.Name, pod.Chain, len(observed.Chains))
		}
		of[pod.Name] = observed.Chains[pod.Chain-1]
	}
	return of
}

// TestChains: a pod's chain has the recorded owners, and its gang changes with them.
func TestChains(t *testing.T) {
	t.Parallel()
	p := New("c")
	member := func(name string, owner Owner) {
		p.SetMember(Pod{"n", name}, Member{Workload: "w", UID: "uid of " + name, Owner: owner, GangPod: event.GangPod{Name: name}})
	}
	member("bare", Owner{})
	member("of a cluster", Owner{Controller: "cluster", Seen: true})
	member("of another kind", Owner{Controller: "torch"})
	p.SetOwner("elsewhere", Owner{})
	p.Drain(10)
	want := map[string]event.PodChain{
		"bare":            {Namespace: "n", Owners: []string{"uid of bare"}},
		"of a cluster":    {Namespace: "n", Owners: []string{"cluster"}, Open: true},
		"of another kind": {Namespace: "n", Owners: []string{"torch"}, Open: true},
	}
	if diff := cmp.Diff(want, chainsOf(t, p, "w")); diff != "" {
		t.Errorf("chains before the owner is seen (-want +got):\n%s", diff)
	}
	p.SetOwner("cluster", Owner{Controller: "job"})
	if keys := p.Drain(10); len(keys) != 1 || keys[0].Gang != "w" {
		t.Errorf("to tell are %v, want the gang", keys)
	}
	want["of a cluster"] = event.PodChain{Namespace: "n", Owners: []string{"cluster", "job"}, Open: true}
	if diff := cmp.Diff(want, chainsOf(t, p, "w")); diff != "" {
		t.Errorf("chains afterwards (-want +got):\n%s", diff)
	}
	p.SetOwner("cluster", Owner{})
	want["of a cluster"] = event.PodChain{Namespace: "n", Owners: []string{"cluster"}}
	if diff := cmp.Diff(want, chainsOf(t, p, "w")); diff != "" {
		t.Errorf("chain of a cluster that nothing controls (-want +got):\n%s", diff)
	}
	p.SetOwner("a", Owner{Controller: "b", Seen: true})
	p.SetOwner("b", Owner{Controller: "a", Seen: true})
	member("in a circle", Owner{Controller: "a", Seen: true})
	if got := chainsOf(t, p, "w")["in a circle"]; len(got.Owners) != longestChain || !got.Open {
		t.Errorf("a circle gives %+v", got)
	}
}

// TestForgedPodsDoNotCrowdOut: pods of another namespace with a gang's labels, more than
// fit one message, displace no pod of the gang; those that do not fit count on their
// nodes.
func TestForgedPodsDoNotCrowdOut(t *testing.T) {
	t.Parallel()
	p := New("c")
	p.SetNode(capacity.Node{Cluster: "c", Name: "node"})
	for i := range 3 {
		name := fmt.Sprintf("own-%d", i)
		p.SetMember(Pod{"own", name}, Member{Workload: "w", UID: name, GangPod: event.GangPod{Name: name, Node: "node", Requests: resource.List{"cpu": 1}}})
	}
	const forged = 20_000
	for i := range forged {
		name := fmt.Sprintf("forged-%d", i)
		p.SetMember(Pod{"another", name}, Member{Workload: "w", UID: name, GangPod: event.GangPod{Name: name, Node: "node", Requests: resource.List{"cpu": 1}}})
	}
	payload, _ := p.Observation(Key{Gang: "w"}, event.Version{})
	data, err := event.Marshal("id", "source", time.Time{}, "", payload)
	if err != nil || len(data) > 8<<20 {
		t.Fatalf("the message has %d bytes, %v", len(data), err)
	}
	observed, own := payload.(*event.GangObserved), 0
	for _, pod := range observed.Pods {
		if observed.Chains[pod.Chain-1].Namespace == "own" {
			own++
		}
	}
	if own != 3 {
		t.Errorf("the message has %d of the gang's own 3 pods", own)
	}
	nodes, _ := p.Observation(Key{Node: "node"}, event.Version{})
	if got, want := nodes.(*event.NodeObserved).Node.Unmanaged["cpu"], int64(forged+3-len(observed.Pods)); got != want || want == 0 {
		t.Errorf("%d CPUs count on the node, want the %d outside of the message", got, want)
	}
	for i := range forged {
		p.RemoveMember(Pod{"another", fmt.Sprintf("forged-%d", i)})
	}
	p.Observation(Key{Gang: "w"}, event.Version{})
	nodes, _ = p.Observation(Key{Node: "node"}, event.Version{})
	if got := nodes.(*event.NodeObserved).Node.Unmanaged; len(got) > 0 {
		t.Errorf("%v counts on the node when they are gone", got)
	}
}
