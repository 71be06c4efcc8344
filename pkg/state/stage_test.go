package state

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// stage is a state with nodes and a gang of a head and two workers, each of which
// fills a node.
type stage struct {
	*testing.T
	*State
	now  time.Time
	seq  uint64
	pods map[string]event.GangPod
	// chains are observed when there are any: the first is that of pods, the second that
	// of forged.
	chains []event.PodChain
	forged []event.GangPod
}

const gangID workload.ID = "w"

// newStage has the given number of nodes n0, n1, ... and submits the gang under the rules.
func newStage(t *testing.T, rules workload.Rules, nodes int) *stage {
	t.Helper()
	return newStageOf(t, rules, nodes, podSet("workers", workload.RoleWorker, 2))
}

// podSet returns pods of which each fills a node.
func podSet(name, role string, count int) workload.PodSet {
	return workload.PodSet{Name: name, Role: role, Count: count, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}
}

// newStageOf is newStage with other workers.
func newStageOf(t *testing.T, rules workload.Rules, nodes int, workers workload.PodSet) *stage {
	t.Helper()
	s := &stage{T: t, now: time.Unix(1_000_000, 0), pods: map[string]event.GangPod{}}
	s.State = New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{
		{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO, Rules: rules},
	}})
	for i := range nodes {
		s.node(fmt.Sprintf("n%d", i), nil)
	}
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: gangID, Queue: "q", Kind: "RayCluster", Name: "gang",
		PodSets: []workload.PodSet{podSet("headgroup", workload.RoleHead, 1), workers},
	}}, nil, s.now)
	s.step(0)
	return s
}

// node reports a node of 4 CPUs, changed as given.
func (s *stage) node(name string, change func(*capacity.Node)) {
	s.seq++
	n := capacity.Node{Cluster: "c", Name: name, Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10}}
	if change != nil {
		change(&n)
	}
	s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: s.seq}, Node: n}, s.now)
}

// removeNode reports that a node is gone.
func (s *stage) removeNode(name string) {
	s.seq++
	s.NodeRemoved(&event.NodeRemoved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Node: name}, s.now)
	s.Decide(s.now)
}

// step lets so much time pass.
func (s *stage) step(d time.Duration) {
	s.now = s.now.Add(d)
	s.Tick(s.now, time.Minute)
	s.Decide(s.now)
}

// pass lets so much time pass, in which watcher and dispatcher report every second.
func (s *stage) pass(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.step(min(time.Second, end.Sub(s.now)))
		s.hear("c", Watcher, s.now)
		s.hear("c", Dispatcher, s.now)
	}
}

// created reports the object, and all pods on their places when they shall run.
func (s *stage) created(run bool) {
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: s.gang().Attempt, Created: true}, s.now, s.now)
	if run {
		s.run()
	}
}

// run puts every pod that is missing onto a free place of its set.
func (s *stage) run() {
	s.Helper()
	clear(s.pods)
	for _, p := range s.gang().Placements {
		for range p.Pods {
			name := fmt.Sprintf("%s-%d", p.PodSet, len(s.pods))
			s.pods[name] = event.GangPod{Name: name, PodSet: p.PodSet, Node: p.Node, Phase: "Running", Ready: true, Requests: resource.List{"cpu": 4, "pods": 1}}
		}
	}
	s.observe()
}

func (s *stage) observe() {
	s.seq++
	o := &event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID}
	for _, pod := range s.pods {
		pod.Attempt = s.gang().Attempt
		if s.chains != nil {
			pod.Chain = 1
		}
		o.Pods = append(o.Pods, pod)
	}
	for _, pod := range s.forged {
		pod.Attempt, pod.Chain = s.gang().Attempt, 2
		o.Pods = append(o.Pods, pod)
	}
	o.Chains = s.chains
	s.Gang(o, s.now, s.now)
}

// loses takes the pods of a set on a node away; empty is any node.
func (s *stage) loses(set, node string) {
	for name, pod := range s.pods {
		if pod.PodSet == set && (node == "" || pod.Node == node) {
			delete(s.pods, name)
		}
	}
	s.observe()
}

func (s *stage) released() {
	clear(s.pods)
	s.observe()
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: s.gang().Attempt, Created: true, Gone: true, Released: true}, s.now, s.now)
}

func (s *stage) gang() *entry {
	s.Helper()
	e := s.live.Get(gangID)
	if e == nil {
		s.Fatal("the gang is not live any more")
	}
	return e
}

// place returns a node that the set has a place on.
func (s *stage) place(set string) string {
	s.Helper()
	for _, p := range s.gang().Placements {
		if p.PodSet == set {
			return p.Node
		}
	}
	s.Fatalf("set %s has no place", set)
	return ""
}

func (s *stage) is(phase workload.Phase, kind workload.ReasonKind) {
	s.Helper()
	e := s.gang()
	if e.Phase != phase || kind != "" && (e.Reason == nil || e.Reason.Kind != kind) {
		s.Fatalf("the gang is %s because of %+v, want %s because of %s", e.Phase, e.Reason, phase, kind)
	}
}

// commanded returns the last command of what has been written since the last
// call.
func (s *stage) commanded() *event.GangCommand {
	var last *event.GangCommand
	for _, m := range s.Flush().Messages {
		if command, ok := m.Payload.(*event.GangCommand); ok {
			last = command
		}
	}
	return last
}

func seconds(n int) workload.Duration { return workload.Duration(time.Duration(n) * time.Second) }

func limit(n int) *int { return &n }
