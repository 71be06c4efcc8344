package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// mostBarred bounds the clusters that a reason names which do not take the workload.
const mostBarred = 3

// isForeign reports whether a cluster is kept for other queues. Who submitted the workload
// reads nothing of it, unless its object or its gang is there.
func (s *State) isForeign(w *Waiting, cluster string) bool {
	if s.tree.Takes(cluster, w.queue.name) || cluster == w.Workload.Home() {
		return false
	}
	g := s.started[w.Workload.ID]
	return g == nil || g.Cluster != cluster
}

// barredText names clusters that have nodes and do not take the workload, or do not offer the
// flavors, at most mostBarred of them; empty when there are none. It is silent about clusters for
// other queues.
func (s *State) barredText(w *Waiting, flavors []workload.PodSetFlavors) string {
	if !s.mayBeBarred(w) {
		return ""
	}
	var why []string
	more, foreign, own := 0, 0, 0
	for _, name := range s.candidates(w) {
		if s.fleets[name].Len() == 0 {
			continue
		}
		if s.isForeign(w, name) {
			foreign++
			continue
		}
		own++
		text := cmp.Or(s.barred(w, name), s.whyNotOffered(name, flavors))
		switch {
		case text == "":
		case len(why) == mostBarred:
			more++
		default:
			why = append(why, text)
		}
	}
	if foreign > 0 && own == 0 {
		why = append(why, fmt.Sprintf("no cluster with nodes takes gangs of ClusterQueue %q", w.queue.name))
	}
	switch {
	case more == 1:
		why = append(why, "1 more cluster does not take it")
	case more > 1:
		why = append(why, fmt.Sprintf("%d more clusters do not take it", more))
	}
	return strings.Join(why, "; ")
}

// noCluster is the reason of a workload for which no cluster has nodes that it may use by the
// flavors.
func (s *State) noCluster(w *Waiting, flavors []workload.PodSetFlavors) *workload.Reason {
	why := &workload.Reason{Kind: workload.ReasonNoNodes, Message: "no cluster has reported a node; check that a capacity-watcher runs"}
	known := slices.ContainsFunc(s.candidates(w), func(cluster string) bool { return s.listed[cluster] })
	switch home := w.Workload.Home(); {
	case home != "" && known:
		why.Message = fmt.Sprintf("cluster %q, where the object is, has no node now", home)
	case home != "":
		why.Message = fmt.Sprintf("cluster %q, where the object is, has reported no node; check that its capacity-watcher runs", home)
	case known:
		why.Message = "no cluster has a node now"
	}
	if text := s.barredText(w, flavors); text != "" {
		why.Message = "no cluster takes it now: " + text
	}
	return why
}

// noGrowth is the reason of a gang that may get no more pods in its cluster.
func (s *State) noGrowth(w *Waiting) *workload.Reason {
	why := &workload.Reason{Kind: workload.ReasonGrowing, Message: "the gang is being removed and gets no more places"}
	if text := s.barredText(w, nil); text != "" {
		why.Message = "the gang gets no more places now: " + text
	}
	return why
}

// withBarred adds to the reason of a gang that fits nowhere which clusters were left out.
func (s *State) withBarred(w *Waiting, flavors []workload.PodSetFlavors, why *workload.Reason) *workload.Reason {
	text := s.barredText(w, flavors)
	if text == "" || why.Kind == workload.ReasonNoNodes {
		return why
	}
	with := *why
	with.Message += "; not counted: " + text
	return &with
}
