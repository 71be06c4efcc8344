package state

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// gangKey names a workload's pods in one cluster; an attempt may begin in one
// while the last is still going in another.
type gangKey struct {
	cluster  string
	workload workload.ID
}

// gang is what was last seen of a workload's pods.
type gang struct {
	version event.Version
	// seen are all pods with the workload's labels, of the chains; pods are its own,
	// others are not.
	seen, pods, others []event.GangPod
	chains             []event.PodChain
	observedAt         time.Time       // when a watcher reported it
	unreservedOn       map[string]bool // names of nodes that have unreserved pods of it
	misplaced          int             // pods on other nodes than are reserved for them
}

// podsByNode counts the pods of a set by the node that they take room on, and reports
// whether there are others that may come to.
func (g *gang) podsByNode(set string, attempt int) (holding map[string]int, unbound bool) {
	holding = map[string]int{}
	for _, pod := range g.pods {
		switch {
		case pod.PodSet != set || pod.Attempt != attempt:
		case pod.Holds():
			holding[pod.Node]++
		case pod.Node == "" && !pod.Deleting && pod.Phase != "Succeeded" && pod.Phase != "Failed":
			unbound = true
		}
	}
	return holding, unbound
}

// slot is a place of a pod set: all pods of the set on the node.
type slot struct{ PodSet, Node string }

// created returns the UIDs of what the dispatcher created for an attempt.
func created(s *event.GangStatus) []string {
	var uids []string
	if s.UID != "" {
		uids = append(uids, s.UID)
	}
	for _, o := range s.Objects {
		uids = append(uids, o.UID)
	}
	return uids
}

// classifyPods divides the pods that carry a workload's labels into its own and
// others. Labels prove nothing: a pod of a gang is in the workload's namespace, and
// the chain of its controllers ends in what Muster created. Others are never ready
// or lost for the gang; they only take room on their nodes.
//
// What is not known counts for the pod: a watcher that does not report chains, a
// controller that it has not seen, an attempt of which nothing is created yet. The
// namespace is known always.
func (t *tables) classifyPods(key gangKey, g *gang) {
	e := t.live.Get(key.workload)
	if e == nil || e.attemptState == nil || e.Cluster != key.cluster {
		g.pods, g.others = g.seen, nil
		return
	}
	g.pods, g.others = nil, nil
	for _, pod := range g.seen {
		if pod.Chain < 1 || pod.Chain > len(g.chains) || e.ownsChain(g.chains[pod.Chain-1]) {
			g.pods = append(g.pods, pod)
		} else {
			g.others = append(g.others, pod)
		}
	}
}

// ownsChain reports whether pods of the chain are the workload's.
func (e *entry) ownsChain(chain event.PodChain) bool {
	switch {
	case chain.Namespace != e.Namespace:
		return false
	case chain.Open || len(e.created) == 0:
		return true
	}
	return slices.ContainsFunc(chain.Owners, func(uid string) bool { return slices.Contains(e.created, uid) })
}

// boundPods counts a gang's pods by where they are.
func (t *tables) boundPods(e *entry) map[slot]int {
	bound := map[slot]int{}
	if g := t.gangs[gangKey{e.Cluster, e.ID}]; g != nil {
		for _, pod := range g.pods {
			if pod.Attempt == e.Attempt && pod.Holds() && !pod.Deleting {
				bound[slot{pod.PodSet, pod.Node}]++
			}
		}
	}
	return bound
}

// stayingPods counts the pods of a set that are bound and not being deleted.
func (t *tables) stayingPods(e *entry, set string) int {
	pods := 0
	for at, bound := range t.boundPods(e) {
		if at.PodSet == set {
			pods += bound
		}
	}
	return pods
}

// podSeen reports whether a pod of the set has been seen, whatever became of it.
func (t *tables) podSeen(e *entry, set string) bool {
	g := t.gangs[gangKey{e.Cluster, e.ID}]
	return g != nil && slices.ContainsFunc(g.pods, func(p event.GangPod) bool { return p.Attempt == e.Attempt && p.PodSet == set })
}

// readiness counts the pods of a started gang that are ready on a node, and all
// that are waited for.
func (t *tables) readiness(e *entry) (ready, all int) {
	counts := map[string]int{}
	if g := t.gangs[gangKey{e.Cluster, e.ID}]; g != nil {
		for _, pod := range g.pods {
			if pod.Attempt == e.Attempt && pod.Ready && pod.Node != "" && !pod.Deleting {
				counts[pod.PodSet]++
			}
		}
	}
	for _, set := range e.PodSets {
		if set.Role != workload.RoleSubmitter {
			wanted := e.wanted(set)
			ready, all = ready+min(counts[set.Name], wanted), all+wanted
		}
	}
	return ready, all
}
