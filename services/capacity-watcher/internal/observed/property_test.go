package observed

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// model is the cluster as it is, for comparison.
type model struct {
	nodes     map[string]capacity.Node
	unmanaged map[Pod]Unmanaged
	members   map[Pod]Member
}

// TestAnyHistory: after any changes and drains in any order, the last observation of
// each key equals that of a cache built from scratch, and nothing removed is left.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := model{map[string]capacity.Node{}, map[Pod]Unmanaged{}, map[Pod]Member{}}
		p, reader := New("c"), map[Key]event.Payload{}
		publish := func(limit int) {
			for _, key := range p.Drain(limit) {
				if payload, gone := p.Observation(key, event.Version{}); gone {
					delete(reader, key)
				} else {
					reader[key] = payload
				}
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now.step(t, p)
			if rapid.Bool().Draw(t, "tell") {
				publish(rapid.IntRange(1, 3).Draw(t, "limit"))
			}
		}
		publish(1000)
		if diff := cmp.Diff(now.fromScratch(), reader); diff != "" {
			t.Fatalf("reader differs from a cache built from scratch (-want +got):\n%s", diff)
		}
	})
}

// step changes the model and the cache alike.
func (m *model) step(t *rapid.T, p *Cache) {
	node := fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(t, "node"))
	pod := Pod{"ns", fmt.Sprintf("p%d", rapid.IntRange(0, 5).Draw(t, "pod"))}
	switch rapid.IntRange(0, 8).Draw(t, "op") {
	case 0:
		m.nodes[node] = drawNode(t, node)
		p.SetNode(m.nodes[node])
	case 1:
		delete(m.nodes, node)
		p.RemoveNode(node)
	case 2:
		m.unmanaged[pod] = drawUnmanaged(t, node)
		p.SetUnmanaged(pod, m.unmanaged[pod])
	case 3:
		delete(m.unmanaged, pod)
		p.RemoveUnmanaged(pod)
	case 4:
		m.members[pod] = drawMember(t, pod, node)
		p.SetMember(pod, m.members[pod])
	case 5:
		delete(m.members, pod)
		p.RemoveMember(pod)
	case 6:
		m.nodes = map[string]capacity.Node{node: drawNode(t, node)}
		p.ReplaceNodes([]capacity.Node{m.nodes[node]})
	case 7:
		m.unmanaged = map[Pod]Unmanaged{pod: drawUnmanaged(t, node)}
		p.ReplaceUnmanaged(map[Pod]Unmanaged{pod: m.unmanaged[pod]})
	case 8:
		m.members = map[Pod]Member{pod: drawMember(t, pod, node)}
		p.ReplaceMembers(map[Pod]Member{pod: m.members[pod]})
	}
}

func drawNode(t *rapid.T, name string) capacity.Node {
	return capacity.Node{
		Cluster: "c", Name: name, Ready: rapid.Bool().Draw(t, "ready"), Cordoned: rapid.Bool().Draw(t, "cordoned"),
		Allocatable: resource.List{resource.CPU: rapid.Int64Range(0, 3).Draw(t, "allocatable")},
	}
}

func drawUnmanaged(t *rapid.T, node string) Unmanaged {
	return Unmanaged{Node: node, Requests: resource.List{resource.CPU: rapid.Int64Range(1, 3).Draw(t, "requests"), resource.Pods: 1}}
}

func drawMember(t *rapid.T, pod Pod, node string) Member {
	return Member{
		Workload: workload.ID(fmt.Sprintf("w%d", rapid.IntRange(0, 2).Draw(t, "workload"))),
		GangPod: event.GangPod{
			Name: pod.Name, Node: node, Ready: rapid.Bool().Draw(t, "podReady"),
			Attempt: rapid.IntRange(1, 2).Draw(t, "attempt"), Phase: "Running",
		},
	}
}

func (m *model) fromScratch() map[Key]event.Payload {
	p := New("c")
	p.ReplaceUnmanaged(m.unmanaged)
	p.ReplaceMembers(m.members)
	for _, node := range m.nodes {
		p.SetNode(node)
	}
	published := map[Key]event.Payload{}
	p.MarkAllChanged()
	for _, key := range p.Drain(1000) {
		published[key], _ = p.Observation(key, event.Version{})
	}
	return published
}
