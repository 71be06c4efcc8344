package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// reasonHas checks the reason of the gang.
func (s *stage) reasonHas(parts ...string) {
	s.Helper()
	for _, part := range parts {
		if why := s.gang().Reason; why == nil || !strings.Contains(why.Message, part) {
			s.Errorf("the reason is %+v, want %q in it", why, part)
		}
	}
}

// A running gang on a node that is not ready says which node it is, until when that is
// tolerated and what follows; and nothing any more when the node is ready again.
func TestANodeThatIsNotReadyIsNamed(t *testing.T) {
	t.Parallel()
	broken := func(n *capacity.Node) { n.Ready = false }
	for name, c := range map[string]struct {
		set   string
		rules workload.Rules
		want  string
	}{
		"a worker's":   {"workers", workload.Rules{}, "its pods get other nodes, or the gang starts again"},
		"the head's":   {"headgroup", workload.Rules{}, "the gang starts again, because its head pod is there"},
		"by its rules": {"workers", workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}}, "because onPodLoss is evict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.rules, 3)
			s.created(true)
			s.step(0)
			s.Flush()
			node := s.place(c.set)
			s.node(node, broken)
			s.is(workload.Running, workload.ReasonNodeNotReady)
			s.reasonHas("node "+node+" of cluster c is not ready since "+s.now.UTC().Format(time.RFC3339),
				"tolerated until "+s.now.Add(time.Minute).UTC().Format(time.RFC3339), c.want)
			if _, changed := s.lastFlushed(); changed == nil || changed.Reason == nil || changed.Reason.Kind != workload.ReasonNodeNotReady {
				t.Errorf("the event is %+v", changed)
			}
			s.step(10 * time.Second)
			s.is(workload.Running, workload.ReasonNodeNotReady)
			s.node(node, nil)
			if why := s.gang().Reason; why != nil {
				t.Errorf("the node is ready again, and the reason is %+v", why)
			}
		})
	}
}

// A gang that is starting names the node that keeps it.
func TestASlowStartNamesTheNodeThatIsNotReady(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	pod := s.pods["headgroup-0"]
	s = newStage(t, workload.Rules{}, 3)
	s.created(false)
	s.pods["headgroup-0"] = pod
	s.observe()
	s.node(s.place("headgroup"), func(n *capacity.Node) { n.Ready = false })
	s.step(slowStart)
	s.is(workload.Dispatched, workload.ReasonStarting)
	s.reasonHas("1 of 3 pods are ready", "node "+s.place("headgroup")+" of cluster c is not ready since")
}

// The owner of a cluster reads that its head pod was replaced, when nothing is wrong any
// more; a job starts again instead.
func TestAReplacedHeadIsReported(t *testing.T) {
	t.Parallel()
	head := func(s *stage, name string, ready bool) {
		s.loses("headgroup", "")
		s.pods[name] = event.GangPod{Name: name, PodSet: "headgroup", RayCluster: "a", Node: s.place("headgroup"),
			Phase: "Running", Ready: ready, Requests: resource.List{"cpu": 4, "pods": 1}}
		s.observe()
	}
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	head(s, "head", true)
	s.Flush()
	head(s, "new-head", false)
	s.step(settleTime)
	s.is(workload.Running, workload.ReasonPodLost)
	head(s, "new-head", true)
	s.is(workload.Running, workload.ReasonHeadReplaced)
	s.reasonHas("the head pod head was replaced by new-head", "connect and submit again")
	if _, changed := s.lastFlushed(); changed == nil || changed.Reason == nil || changed.Reason.Kind != workload.ReasonHeadReplaced {
		t.Errorf("the event is %+v", changed)
	}

	job := newStage(t, workload.Rules{}, 3)
	job.gang().Kind = workload.KindRayJob
	job.created(true)
	head(job, "head", true)
	head(job, "new-head", true)
	job.step(settleTime)
	job.is(workload.Evicting, workload.ReasonPodLost)
}
