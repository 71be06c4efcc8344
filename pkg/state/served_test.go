package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// The list of a cluster's watcher says which kinds the cluster serves. A gang of another kind
// reserves nothing and waits; a list of a later watcher that does not say it, as an earlier
// version's does not, lets the gang be tried.
func TestKindsAreTakenInFromTheListOfTheWatcher(t *testing.T) {
	t.Parallel()
	list := func(session int64, kinds ...workload.ObjectKind) *event.CapacitySynced {
		return &event.CapacitySynced{Version: event.Version{Session: session, Seq: 9}, Cluster: "c", Nodes: []string{"n"}, Kinds: kinds}
	}
	for name, c := range map[string]struct {
		lists []*event.CapacitySynced
		want  workload.Phase
	}{
		"no list":                             {nil, workload.Admitted},
		"a list without kinds":                {[]*event.CapacitySynced{list(1)}, workload.Admitted},
		"a list with other kinds":             {[]*event.CapacitySynced{list(1, "v1 Pod")}, workload.Queued},
		"a list with it":                      {[]*event.CapacitySynced{list(1, "v1 Pod", "kubeflow.org/v1 PyTorchJob")}, workload.Admitted},
		"it is installed":                     {[]*event.CapacitySynced{list(1, "v1 Pod"), list(1, "kubeflow.org/v1 PyTorchJob", "v1 Pod")}, workload.Admitted},
		"a watcher of an earlier version":     {[]*event.CapacitySynced{list(1, "v1 Pod"), list(2)}, workload.Admitted},
		"a watcher that was replaced reports": {[]*event.CapacitySynced{list(2, "v1 Pod"), list(1, "kubeflow.org/v1 PyTorchJob")}, workload.Queued},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{{Name: "q", Namespaces: []string{"ns"}}}})
			s.CatchUp()
			now := time.Unix(1_000_000, 0)
			s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: 1}, Node: capacity.Node{Cluster: "c", Name: "n", Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10}}}, now)
			for _, l := range c.lists {
				s.Synced(l, now)
			}
			s.BeginDecisions(now)
			s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
				ID: gangID, Queue: "q", Kind: workload.KindAppWrapper, Name: "gang", PodSets: []workload.PodSet{{
					Name: "head", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}},
					Kinds: []workload.ObjectKind{"kubeflow.org/v1 PyTorchJob"},
				}},
			}}, nil, now)
			s.Decide(now)
			e := s.live.Get(gangID)
			if e.Phase != c.want {
				t.Fatalf("it is %s because %+v, want %s", e.Phase, e.Reason, c.want)
			}
			if c.want == workload.Queued && (e.Reason.Kind != workload.ReasonNeverFits || !strings.Contains(e.Reason.Message, "serves the kind PyTorchJob of kubeflow.org/v1")) {
				t.Errorf("it waits because of %+v", e.Reason)
			}
		})
	}
}
