package admission

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// The API server refuses pods that are beyond a LimitRange of their namespace. So a gang gets
// no places in a cluster where its pods would be refused. Where all clusters would refuse them
// it is held and lets others pass, until a LimitRange allows them. A gang that has started
// keeps its places, and its growth is not compared.

// judgedKey identifies pod sets in a namespace. Waiting workloads of a signature share their
// pod sets, which are not changed any more.
type judgedKey struct {
	first              *workload.PodSet
	sets               int
	namespace, cluster string
}

// mostJudged bounds the answers that are kept.
const mostJudged = 10_000

// beyond returns which bound of the LimitRanges in a cluster the pods of a workload do not
// keep; empty for none. It keeps its answers: a million gangs of few shapes may wait.
func (n *namespaces) beyond(w *workload.Workload, cluster string) string {
	ranges := n.of[cluster][w.Namespace].Ranges
	if len(ranges) == 0 || len(w.PodSets) == 0 {
		return ""
	}
	key := judgedKey{&w.PodSets[0], len(w.PodSets), w.Namespace, cluster}
	why, known := n.judged[key]
	if !known {
		if len(n.judged) >= mostJudged {
			clear(n.judged)
		}
		why = workload.Beyond(w.PodSets, ranges)
		n.judged[key] = why
	}
	return why
}

// beyond returns the clusters, sorted, that would refuse the pods of a waiting workload.
func (s *State) beyond(w *Waiting) []string {
	if w.Grows {
		return nil
	}
	var clusters []string
	for cluster := range s.namespaces.of {
		if home := w.Workload.Home(); (home == "" || home == cluster) && s.namespaces.beyond(w.Workload, cluster) != "" {
			clusters = append(clusters, cluster)
		}
	}
	slices.Sort(clusters)
	return clusters
}

func (s *State) whyBeyond(w *workload.Workload, cluster string) string {
	return fmt.Sprintf("namespace %q of cluster %q: %s", w.Namespace, cluster, s.namespaces.beyond(w, cluster))
}
