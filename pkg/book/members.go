package book

import (
	"slices"

	"muster.dev/muster/pkg/event"
)

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

// noteCreated takes in what was created for the present attempt. Pods that were
// taken for the gang's may turn out to be others.
func (b *Book) noteCreated(e *entry, s *event.GangStatus) {
	uids := created(s)
	if len(uids) == 0 || slices.Equal(uids, e.created) {
		return
	}
	e.created = uids
	key := gangKey{e.Cluster, e.ID}
	if g := b.gangs[key]; g != nil {
		b.tellApart(key, g)
		b.countStrays(key)
	}
}

// tellApart divides the pods that carry a workload's labels into its own and
// others. Labels prove nothing: a pod of a gang is in the workload's namespace, and
// the chain of its controllers ends in what Muster created. Others are never ready
// or lost for the gang; they only take room on their nodes.
//
// What is not known counts for the pod: a watcher that does not tell chains, a
// controller that it has not seen, an attempt of which nothing is created yet. The
// namespace is known always.
func (b *Book) tellApart(key gangKey, g *gang) {
	e := b.live.Get(key.workload)
	if e == nil || e.course == nil || e.Cluster != key.cluster {
		g.pods, g.others = g.seen, nil
		return
	}
	g.pods, g.others = nil, nil
	for _, pod := range g.seen {
		if pod.Chain < 1 || pod.Chain > len(g.chains) || e.made(g.chains[pod.Chain-1]) {
			g.pods = append(g.pods, pod)
		} else {
			g.others = append(g.others, pod)
		}
	}
}

// made reports whether pods of the chain are the workload's.
func (e *entry) made(chain event.PodChain) bool {
	switch {
	case chain.Namespace != e.Namespace:
		return false
	case chain.Open || len(e.created) == 0:
		return true
	}
	return slices.ContainsFunc(chain.Owners, func(uid string) bool { return slices.Contains(e.created, uid) })
}
