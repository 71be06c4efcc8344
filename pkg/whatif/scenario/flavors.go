package scenario

import (
	"errors"
	"fmt"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// flavorsOf returns what a gang that has places already is charged to: the first
// flavors of its queue whose nodes these are. Quota is not asked: the gang runs.
func flavorsOf(policy *quota.Tree, w *workload.Workload, places []workload.Placement, nodes map[string]capacity.Node) ([]workload.PodSetFlavors, error) {
	name := w.Queue
	if local := policy.Local(w.Namespace, w.Queue); local != nil {
		name = local.ClusterQueue
	}
	queue := policy.Queue(name)
	if queue == nil {
		return nil, nil // a queue without quota
	}
	assignments, _, why := queue.Assignments(w.PodSets)
	if why != nil {
		return nil, errors.New(why.Message)
	}
	for _, a := range assignments {
		if onNodesOf(policy, a.Flavors, places, nodes) {
			return a.Flavors, nil
		}
	}
	return nil, fmt.Errorf("no flavors of queue %q have nodes with these places", name)
}

func onNodesOf(policy *quota.Tree, flavors []workload.PodSetFlavors, places []workload.Placement, nodes map[string]capacity.Node) bool {
	for _, f := range flavors {
		selector := policy.Terms(f).NodeSelector
		for _, place := range places {
			if place.PodSet != f.PodSet {
				continue
			}
			for label, value := range selector {
				if nodes[place.Node].Labels[label] != value {
					return false
				}
			}
		}
	}
	return true
}
