package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// newSelecting is a term that has begun, with one node, a queue for namespaces with the label
// team=a, and a gang that waits in it.
func newSelecting(t *testing.T) *State {
	t.Helper()
	s := New(1, Stored{
		MaxEvent: 1 << 20, Queues: []Queue{{Name: "q", Namespaces: []string{"ns"}}},
		Policy: quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "q", NamespaceSelector: &quota.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}}},
	})
	s.CatchUp()
	now := time.Unix(1_000_000, 0)
	s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: 1}, Node: capacity.Node{Cluster: "c", Name: "n", Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10}}}, now)
	s.BeginDecisions(now)
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: gangID, Queue: "q", Kind: "RayCluster", Name: "gang",
		PodSets: []workload.PodSet{{Name: "head", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}}},
	}}, nil, now)
	s.Decide(now)
	return s
}

// Reports of namespaces come again, late and from watchers that were replaced. Only the newest
// counts, and what a new watcher does not publish again is gone.
func TestNamespacesAreTakenInByVersion(t *testing.T) {
	t.Parallel()
	namespace := func(session int64, seq uint64, team string) *event.NamespaceObserved {
		return &event.NamespaceObserved{Version: event.Version{Session: session, Seq: seq}, Cluster: "c", Namespace: "ns", Labels: map[string]string{"team": team}}
	}
	synced := func(session int64, seq uint64, namespaces bool) *event.CapacitySynced {
		return &event.CapacitySynced{Version: event.Version{Session: session, Seq: seq}, Cluster: "c", Nodes: []string{"n"}, Namespaces: namespaces}
	}
	gone := namespace(1, 4, "")
	gone.Gone, gone.Labels = true, nil
	for name, c := range map[string]struct {
		news []event.Payload
		want string // of the reason; empty: it is admitted
	}{
		"nothing":                             {nil, `the namespaces of cluster "c" have not been reported yet`},
		"a watcher that lists no namespaces":  {[]event.Payload{synced(1, 3, false)}, "have not been reported yet"},
		"a list without it":                   {[]event.Payload{synced(1, 3, true)}, `there is no namespace "ns"`},
		"it is selected":                      {[]event.Payload{namespace(1, 2, "a")}, ""},
		"it is not":                           {[]event.Payload{namespace(1, 2, "b")}, "it has team=b"},
		"an older report comes later":         {[]event.Payload{namespace(1, 3, "b"), namespace(1, 2, "a")}, "it has team=b"},
		"it is gone":                          {[]event.Payload{namespace(1, 2, "b"), synced(1, 3, true), gone}, `there is no namespace "ns"`},
		"a new watcher does not report it":    {[]event.Payload{namespace(1, 2, "a"), synced(2, 1, true)}, `there is no namespace "ns"`},
		"a new watcher reports it":            {[]event.Payload{namespace(1, 2, "b"), namespace(2, 1, "a"), synced(2, 2, true)}, ""},
		"a watcher that was replaced reports": {[]event.Payload{namespace(2, 1, "b"), synced(2, 2, true), namespace(1, 9, "a")}, "it has team=b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSelecting(t)
			now := time.Unix(1_000_001, 0)
			for _, payload := range c.news {
				switch p := payload.(type) {
				case *event.NamespaceObserved:
					s.Namespace(p, now)
				case *event.CapacitySynced:
					s.Synced(p, now)
				}
			}
			s.Decide(now)
			e := s.live.Get(gangID)
			switch {
			case c.want == "":
				if e.Phase != workload.Admitted {
					t.Errorf("it is %s because %+v", e.Phase, e.Reason)
				}
			case e.Reason == nil || !strings.Contains(e.Reason.Message, c.want):
				t.Errorf("it is %s because %+v, want %q", e.Phase, e.Reason, c.want)
			}
		})
	}
}

func TestNamespacesOfAClusterAreBounded(t *testing.T) {
	t.Parallel()
	s := newSelecting(t)
	for i := range maxNamespaces + 3 {
		s.Namespace(&event.NamespaceObserved{Version: event.Version{Session: 1, Seq: uint64(i + 2)}, Cluster: "c", Namespace: fmt.Sprint(i)}, time.Unix(1_000_001, 0))
	}
	if got := s.RefusedObservations(); got != 3 || len(s.namespaces["c"]) != maxNamespaces {
		t.Errorf("%d are refused and %d known, want 3 and %d", got, len(s.namespaces["c"]), maxNamespaces)
	}
}
