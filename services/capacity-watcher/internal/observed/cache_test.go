package observed

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func machine(name string) capacity.Node {
	return capacity.Node{
		Cluster: "c", Name: name, Ready: true, Labels: map[string]string{"zone": "a"},
		Allocatable: resource.List{resource.CPU: 8000, "nvidia.com/gpu": 4},
	}
}

// drain returns the observations of everything that has changed.
func drain(p *Cache) []event.Payload {
	var payloads []event.Payload
	for _, key := range p.Drain(math.MaxInt) {
		payload, _ := p.Observation(key, event.Version{})
		payloads = append(payloads, payload)
	}
	return payloads
}

func observed(node capacity.Node, unmanaged resource.List) *event.NodeObserved {
	node.Unmanaged = unmanaged
	return &event.NodeObserved{Node: node}
}

// TestStory checks the observations at each step of a small cluster's life.
func TestStory(t *testing.T) {
	t.Parallel()
	p := New("c")
	cordoned := machine("n1")
	cordoned.Cordoned = true
	recreated := machine("n1")
	recreated.Created = time.Unix(1_000_000, 0)
	member := Member{Workload: "w", GangPod: event.GangPod{Name: "w-head", Attempt: 1, PodSet: "head", Phase: "Pending"}}
	running := member
	running.Node, running.Phase, running.Ready = "n1", "Running", true
	daemon := Unmanaged{Node: "n1", Requests: resource.List{resource.CPU: 100, resource.Pods: 1}}
	other := Unmanaged{Node: "n1", Requests: resource.List{resource.CPU: 500, resource.Pods: 1}}
	elsewhere := Unmanaged{Node: "n2", Requests: other.Requests}
	head := Pod{"team", "w-head"}
	for _, step := range []struct {
		name   string
		change func()
		want   []event.Payload
	}{
		{"a pod on a node that is not known", func() { p.SetUnmanaged(Pod{"sys", "d"}, daemon) }, nil},
		{"its node", func() { p.SetNode(machine("n1")) }, []event.Payload{observed(machine("n1"), daemon.Requests)}},
		{"the same again", func() { p.SetNode(machine("n1")); p.SetUnmanaged(Pod{"sys", "d"}, daemon) }, nil},
		{"a second pod, then gone before the drain", func() {
			p.SetUnmanaged(Pod{"x", "o"}, other)
			p.RemoveUnmanaged(Pod{"x", "o"})
		}, []event.Payload{observed(machine("n1"), daemon.Requests)}},
		{"a second pod", func() { p.SetUnmanaged(Pod{"x", "o"}, other) },
			[]event.Payload{observed(machine("n1"), resource.List{resource.CPU: 600, resource.Pods: 2})}},
		{"it is recreated elsewhere", func() { p.SetUnmanaged(Pod{"x", "o"}, elsewhere) },
			[]event.Payload{observed(machine("n1"), daemon.Requests)}},
		{"one of the same name", func() { p.SetNode(recreated) }, []event.Payload{observed(recreated, daemon.Requests)}},
		{"cordon", func() { p.SetNode(cordoned) }, []event.Payload{observed(cordoned, daemon.Requests)}},
		{"a pod of a gang", func() { p.SetMember(head, member) },
			[]event.Payload{&event.GangObserved{Cluster: "c", Workload: "w", Pods: []event.GangPod{member.GangPod}}}},
		{"it runs", func() { p.SetMember(head, running); p.SetMember(head, running) },
			[]event.Payload{&event.GangObserved{Cluster: "c", Workload: "w", Pods: []event.GangPod{running.GangPod}}}},
		{"it is gone", func() { p.RemoveMember(head); p.RemoveMember(head) },
			[]event.Payload{&event.GangObserved{Cluster: "c", Workload: "w", Pods: []event.GangPod{}}}},
		{"the node is gone", func() { p.RemoveNode("n1"); p.RemoveNode("n1") },
			[]event.Payload{&event.NodeRemoved{Cluster: "c", Node: "n1"}}},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			if diff := cmp.Diff(step.want, drain(p)); diff != "" {
				t.Fatalf("%s: observations (-want +got):\n%s", step.name, diff)
			}
		})
	}
}

// TestWaitsAreBounded: pods that wait for the same say so once, and a gang says no more than
// eight things.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	p := New("c")
	for i := range 40 {
		name := fmt.Sprintf("p%02d", i)
		p.SetMember(Pod{"n", name}, Member{Workload: "w", GangPod: event.GangPod{Name: name, Waits: fmt.Sprint("for ", i/2)}})
	}
	payload, _ := p.Observation(Key{Gang: "w"}, event.Version{})
	var got, want []string
	for _, pod := range payload.(*event.GangObserved).Pods {
		if pod.Waits != "" {
			got = append(got, pod.Name+" "+pod.Waits)
		}
	}
	for i := range 8 {
		want = append(want, fmt.Sprintf("p%02d for %d", 2*i, i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the gang says (-want +got):\n%s", diff)
	}
	p.Drain(math.MaxInt)
	p.SetMember(Pod{"n", "p00"}, Member{Workload: "w", GangPod: event.GangPod{Name: "p00", Waits: "for another"}})
	if p.Changed() != 1 {
		t.Error("that a pod waits for something else is no change")
	}
}

// TestHugeRequests: a saturated sum returns to the real use.
func TestHugeRequests(t *testing.T) {
	t.Parallel()
	p := New("c")
	p.SetNode(machine("n1"))
	huge := Unmanaged{Node: "n1", Requests: resource.List{resource.CPU: math.MaxInt64}}
	p.SetUnmanaged(Pod{"x", "a"}, huge)
	p.SetUnmanaged(Pod{"x", "b"}, huge)
	p.RemoveUnmanaged(Pod{"x", "a"})
	p.RemoveUnmanaged(Pod{"x", "b"})
	if diff := cmp.Diff([]event.Payload{observed(machine("n1"), nil)}, drain(p)); diff != "" {
		t.Errorf("observations (-want +got):\n%s", diff)
	}
}

// TestDrainInOrder: the oldest change comes first, and each key once.
func TestDrainInOrder(t *testing.T) {
	t.Parallel()
	p := New("c")
	p.MarkChanged(Key{Node: "b"}, Key{Gang: "w"}, Key{Node: "a"}, Key{Node: "b"})
	got := [][]Key{p.Drain(2), p.Drain(2), p.Drain(2)}
	want := [][]Key{{{Node: "b"}, {Gang: "w"}}, {{Node: "a"}}, nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
}

func TestHostPortsOfPodsThatAreNotManaged(t *testing.T) {
	t.Parallel()
	p := New("c1")
	p.SetNode(machine("n1"))
	pod := Unmanaged{Node: "n1", Requests: resource.List{resource.Pods: 1}, Ports: []workload.HostPort{{Port: 9100}, {Port: 80}}}
	p.SetUnmanaged(Pod{"sys", "a"}, pod)
	p.SetUnmanaged(Pod{"sys", "b"}, Unmanaged{Node: "n1", Requests: pod.Requests, Ports: pod.Ports[:1]})
	p.Drain(9)
	node, _ := p.node("n1")
	if diff := cmp.Diff([]workload.HostPort{{Port: 80}, {Port: 9100}}, node.UsedPorts); diff != "" {
		t.Errorf("ports in use (-want +got):\n%s", diff)
	}
	pod.Ports = pod.Ports[:1]
	p.SetUnmanaged(Pod{"sys", "a"}, pod)
	if p.Changed() != 1 {
		t.Errorf("%d things have changed with the ports of a pod, want its node", p.Changed())
	}
	p.RemoveUnmanaged(Pod{"sys", "a"})
	p.RemoveUnmanaged(Pod{"sys", "b"})
	if node, _ = p.node("n1"); len(node.UsedPorts) != 0 {
		t.Errorf("ports in use of an empty node: %v", node.UsedPorts)
	}
}
