package state

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

const inD workload.ClusterSelector = workload.ClusterNameKey + "=d"

// A gang prefers the clusters of its queue unless it prefers some itself. As its own preference,
// that of its queue is no condition.
func TestAGangPrefersTheClustersOfItsQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue, own      workload.ClusterSelector
		submitter, want string
		full            bool // cluster d
		prefers         workload.ClusterSelector
	}{
		"neither prefers any":            {want: "c"},
		"its queue prefers one":          {queue: inD, want: "d", prefers: inD},
		"the preferred one is full":      {queue: inD, full: true, want: "c", prefers: inD},
		"it prefers another itself":      {queue: inD, own: workload.ClusterNameKey + "=c", want: "c", prefers: workload.ClusterNameKey + "=c"},
		"its object is in a cluster":     {queue: inD, submitter: workload.ByKubernetes + "/c/ann", want: "c"},
		"its queue prefers what is none": {queue: "data=images", want: "c", prefers: "data=images"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{PreferClusters: c.queue}, 0)
			head := podSet("headgroup", workload.RoleHead, 1)
			head.PreferClusters = c.own
			s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
				ID: "other", Queue: "q", Kind: workload.KindRayCluster, Name: "other", Submitter: c.submitter, PodSets: []workload.PodSet{head},
			}}, nil, s.now)
			for i := range 4 { // of which the first gang needs three
				s.node(fmt.Sprintf("n%d", i), nil)
				s.nodeIn("d", fmt.Sprintf("d%d", i), !c.full)
			}
			s.step(time.Second)
			other := s.live.Get("other")
			if other.Cluster != c.want || other.PodSets[0].PreferClusters != c.prefers {
				t.Errorf("the gang is in %q and prefers %q, want %q and %q", other.Cluster, other.PodSets[0].PreferClusters, c.want, c.prefers)
			}
		})
	}
}

// nodeIn reports a node of another cluster, with room for a pod or for none.
func (s *stage) nodeIn(cluster, name string, room bool) {
	s.seq++
	n := capacity.Node{Cluster: cluster, Name: name, Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10}}
	if !room {
		n.Allocatable["cpu"] = 1
	}
	s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: s.seq}, Node: n}, s.now)
}
