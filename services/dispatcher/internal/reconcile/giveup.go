package reconcile

import (
	"context"
	"slices"
	"strings"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// giveUp makes a RayCluster smaller that shall give up workers, and names those that KubeRay
// is to delete: the pods on the places that are to be free.
func (p *pass) giveUp(ctx context.Context, seen observation) error {
	give := p.command.GiveUp
	if give == nil || seen.object == nil || p.command.Kind != workload.KindRayCluster {
		return nil
	}
	sizes, pods := map[string]int{}, map[string][]string{}
	for set, size := range give.Sizes {
		if now, known := seen.sizes[set]; known && now > size {
			sizes[set], pods[set] = size, p.leaving(set, now-size)
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	p.logger.Info("making the RayCluster smaller for another workload", append(p.fields(), zap.Any("pods", pods))...)
	return p.cluster.GiveUp(ctx, *seen.object, sizes, pods)
}

// leaving names the pods of a worker group, at most that many, on the places that it leaves.
func (p *pass) leaving(set string, most int) (names []string) {
	there := p.cache.Pods(p.command.Workload)
	slices.SortFunc(there, func(a, b gang.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, place := range p.command.GiveUp.Leave {
		left := place.Pods
		for _, pod := range there {
			if place.PodSet == set && pod.PodSet == set && pod.Node == place.Node && pod.Attempt == p.command.Attempt && !pod.Deleting && left > 0 && len(names) < most {
				names = append(names, pod.Name)
				left--
			}
		}
	}
	return names
}
