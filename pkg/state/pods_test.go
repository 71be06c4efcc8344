package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// TestForgedMembers: what carries a gang's labels and is not made by its object
// neither mends nor breaks it, and hides no use of a node.
func TestForgedMembers(t *testing.T) {
	t.Parallel()
	const uid = "uid-of-the-object"
	own := event.PodChain{Namespace: "ns", Owners: []string{"of the RayCluster", uid}}
	for name, c := range map[string]struct {
		chain  event.PodChain
		member bool
	}{
		"of its object":                {own, true},
		"of a controller not yet seen": {event.PodChain{Namespace: "ns", Owners: []string{"x"}, Open: true}, true},
		"in another namespace":         {event.PodChain{Namespace: "theirs", Owners: []string{"x"}}, false},
		"in another namespace, open":   {event.PodChain{Namespace: "theirs", Owners: []string{"x"}, Open: true}, false},
		"with a stolen UID elsewhere":  {event.PodChain{Namespace: "theirs", Owners: []string{uid}}, false},
		"of another object":            {event.PodChain{Namespace: "ns", Owners: []string{"another"}}, false},
		"of no controller":             {event.PodChain{Namespace: "ns", Owners: []string{"the pod's own"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 4)
			s.live.Get(gangID).Kind = "RayJob"
			s.live.Get(gangID).Namespace = "ns"
			s.chains = []event.PodChain{own, c.chain}
			s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, UID: uid}, s.now, s.now)
			s.run()
			s.is(workload.Running, "")
			head := s.pods["headgroup-0"]
			if head.Name == "" {
				t.Fatalf("no head among %v", s.pods)
			}

			// Another head, on the head's own place: the job's head would be lost.
			s.forge(event.GangPod{Name: "zz-forged", PodSet: "headgroup", Node: head.Node, Phase: "Running", Ready: true, Requests: resource.List{"cpu": 4, "pods": 1}})
			s.step(settleTime)
			if evicted := s.gang().Phase == workload.Evicting; evicted != c.member {
				t.Errorf("evicted by a second head: %v, want %v", evicted, c.member)
			}
			if c.member {
				return
			}
			amounts := s.nodes[admission.NodeKey{Cluster: "c", Name: head.Node}].unreserved[gangID]
			if !amounts.Equal(resource.List{"cpu": 4, "pods": 1}) {
				t.Errorf("counted as used beside the reservation: %v, want the whole pod", amounts)
			}
			// It does not replace what is lost either.
			delete(s.pods, "headgroup-0")
			s.observe()
			s.step(time.Second)
			if ready, all := s.readiness(s.gang()); ready != all-1 {
				t.Errorf("%d of %d are ready with a forged pod instead of the head", ready, all)
			}
		})
	}
}

// TestMembersBecomeKnown: pods that were seen before the object was known become known
// apart when it is.
func TestMembersBecomeKnown(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.live.Get(gangID).Namespace = "ns"
	s.chains = []event.PodChain{{Namespace: "ns", Owners: []string{"uid"}}, {Namespace: "ns", Owners: []string{"another"}}}
	node := s.place("headgroup")
	s.forge(event.GangPod{Name: "forged", PodSet: "headgroup", Node: node, Phase: "Running", Ready: true, Requests: resource.List{"cpu": 1}})
	at := admission.NodeKey{Cluster: "c", Name: node}
	if amounts := s.nodes[at].unreserved[gangID]; len(amounts) > 0 {
		t.Fatalf("counted before anything is known: %v", amounts)
	}
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Objects: []event.CreatedObject{{UID: "uid"}}}, s.now, s.now)
	if amounts := s.nodes[at].unreserved[gangID]; !amounts.Equal(resource.List{"cpu": 1}) {
		t.Errorf("counted afterwards: %v, want 1 CPU", amounts)
	}
}

// forge adds a pod of the second chain.
func (s *stage) forge(pod event.GangPod) {
	s.forged = append(s.forged, pod)
	s.observe()
}
