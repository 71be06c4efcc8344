package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// trouble is what a running gang lacks. It is not stored: a new term counts its
// time anew.
type trouble struct {
	since time.Time // not all pods are ready; zero when all are
	lost  time.Time // a pod was seen lost, whether or not it has been replaced
	head  bool      // the head was replaced
	of    string    // the RayCluster of the lost pod
	noted bool      // the workload's reason says so
	// gone counts the lost pods by pod set; excused are those of which the owner or
	// Ray's autoscaler wants fewer. The news of either may come first.
	gone, excused map[string]int
}

// excuse makes the loss of pods none: that many fewer of the set are wanted than
// before, and of those that are there so many are yet to go.
func (t *trouble) excuse(set string, fewer, yet int) {
	if t.gone[set] > 0 {
		t.gone[set] = max(0, t.gone[set]-fewer)
	}
	if t.excused == nil {
		t.excused = map[string]int{}
	}
	t.excused[set] = yet
	for _, gone := range t.gone {
		if gone > 0 {
			return
		}
	}
	if !t.head {
		t.lost = time.Time{}
	}
}

// lose notes the loss of a pod, unless fewer are wanted.
func (t *trouble) lose(pod event.GangPod, now time.Time) {
	if t.excused[pod.PodSet] > 0 {
		t.excused[pod.PodSet]--
		return
	}
	if t.gone == nil {
		t.gone = map[string]int{}
	}
	t.gone[pod.PodSet]++
	if t.lost.IsZero() {
		t.lost, t.of = now, pod.RayCluster
	}
}

// checkWhole notes whether a running gang has all its pods.
func (b *Book) checkWhole(e *entry, now time.Time) {
	ready, all := b.readiness(e)
	if ready == all {
		mended := e.broken.noted && e.Reason != nil && e.Reason.Kind == workload.ReasonPodLost
		e.broken.since, e.broken.noted = time.Time{}, false
		if mended {
			e.Reason = b.growthReason(e)
			b.tell(e, now)
		}
		return
	}
	if e.broken.since.IsZero() {
		e.broken.since = now
	}
}

// noteLoss notes that a pod of a running gang which was there is gone, has ended
// or is on its way out, even if another one is there instead.
func (b *Book) noteLoss(e *entry, before, after []event.GangPod, now time.Time) {
	here := map[string]bool{}
	for _, pod := range after {
		here[pod.Name] = pod.Holds() && !pod.Deleting
	}
	for _, pod := range before {
		if pod.Attempt == e.Attempt && pod.Holds() && !pod.Deleting && pod.PodSet != submitterOf(e) && !here[pod.Name] {
			e.broken.lose(pod, now)
		}
	}
}

// retried reports whether a job lost a pod because KubeRay took its RayCluster
// away whole: it tries the job again with another one.
func (b *Book) retried(e *entry) bool {
	g := b.gangs[gangKey{e.Cluster, e.ID}]
	return e.Kind == "RayJob" && !e.broken.head && !slices.ContainsFunc(g.pods, func(p event.GangPod) bool {
		return p.RayCluster == e.broken.of && p.Holds() && !p.Deleting
	})
}

// noteHead notes that the head of a running gang was replaced by another one in
// the same RayCluster. KubeRay's retries make another RayCluster.
func (b *Book) noteHead(e *entry, pods []event.GangPod, now time.Time) {
	for _, pod := range pods {
		if pod.Attempt != e.Attempt || pod.PodSet != setOf(e, workload.RoleHead) || !pod.Holds() || pod.Deleting {
			continue
		}
		if e.head.Name != "" && e.head.Name != pod.Name && e.head.RayCluster == pod.RayCluster {
			e.broken.head = true
			if e.broken.lost.IsZero() {
				e.broken.lost = now
			}
		}
		e.head = pod
	}
}

// lossEvicts reports whether the loss of a pod means the end of the attempt:
// because the workload asks for it, or because a job has lost its head, with
// which Ray forgets the job, so that KubeRay would wait for it for ever.
func lossEvicts(e *entry, rules workload.Rules) bool {
	return rules.OnPodLoss == workload.EvictOnLoss || e.broken.head && e.Kind == "RayJob"
}

// ageBroken deals with a running gang that has lacked pods for a while.
func (b *Book) ageBroken(e *entry, rules workload.Rules, now time.Time) {
	ready, all := b.readiness(e)
	message := fmt.Sprintf("%d of %d pods are ready", ready, all)
	reason := &workload.Reason{Kind: workload.ReasonPodLost}
	switch {
	case over(now, e.broken.since, rules.HealWithin()):
		if b.sure(e, now) {
			reason.Message = message + fmt.Sprintf(" %s after one was lost", rules.HealWithin())
			b.evictForFault(e, reason, now)
		}
	case !e.broken.noted:
		e.broken.noted = true
		if e.Reason == nil {
			reason.Message = message + "; KubeRay replaces the others"
			e.Reason = reason
			b.tell(e, now)
		}
	}
}

// slot is a place of a pod set: all pods of the set on the node.
type slot struct{ PodSet, Node string }

// bound counts a gang's pods by where they are.
func (b *Book) bound(e *entry) map[slot]int {
	bound := map[slot]int{}
	if g := b.gangs[gangKey{e.Cluster, e.ID}]; g != nil {
		for _, pod := range g.pods {
			if pod.Attempt == e.Attempt && pod.Holds() && !pod.Deleting {
				bound[slot{pod.PodSet, pod.Node}]++
			}
		}
	}
	return bound
}

// losePlaces has the gangs that have places on a node looked at: it is gone, not
// ready, barred, or has no room for them any more.
func (b *Book) losePlaces(key admission.NodeKey, now time.Time) {
	n := b.nodes[key]
	if n == nil || len(n.holders) == 0 || b.sound(n) {
		return
	}
	for _, e := range b.holders(n) {
		if tearingDown(e) || !e.moveAt.IsZero() || b.kept(e) {
			continue
		}
		e.moveAt = now
		if !n.lost() {
			e.moveAt = now.Add(settle)
		}
		if n.Drained() && e.Phase == workload.Running {
			e.moveAt = now.Add(time.Duration(b.rules(e).CheckpointGrace))
			b.announceMove(e, key.Name, now)
		}
		b.schedule(e)
	}
}

// holders are the workloads that have places on a node, in order.
func (b *Book) holders(n *node) []*entry {
	var holders []*entry
	for id := range n.holders {
		holders = append(holders, b.live.Get(id))
	}
	slices.SortFunc(holders, func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	return holders
}

// announceMove tells a running gang that pods of it will be moved.
func (b *Book) announceMove(e *entry, node string, now time.Time) {
	if !e.moveAt.After(now) {
		return
	}
	e.EvictAt = e.moveAt
	e.Reason = &workload.Reason{Kind: workload.ReasonDrained, Message: fmt.Sprintf("node %s is drained: pods there are moved or the gang is evicted at %s",
		node, e.moveAt.UTC().Format(time.RFC3339))}
	b.tell(e, now)
	b.desire(e, event.Present, now)
}

// lost says that pods on the node do not run any more.
func (n *node) lost() bool { return !n.present || n.overdue }

// sound says that nothing on the node needs another place.
func (b *Book) sound(n *node) bool {
	return n.present && n.Ready && !n.overdue && !n.Cordoned && len(n.Taints) == 0 && n.excess() == ""
}

// excess is a resource of which more is taken than there is; empty when there is
// none.
func (n *node) excess() resource.Name {
	free := n.Allocatable.Minus(n.used()).Minus(n.reserved)
	for _, name := range free.Names() {
		if free[name] < 0 {
			return name
		}
	}
	return ""
}

// misplaced returns how many pods of each place of a gang need another one, and
// why: all on a lost or drained node; on a barred or overfull one those that are
// not bound there.
func (b *Book) misplaced(e *entry) (moves map[slot]int, reason *workload.Reason) {
	moves, reason = map[slot]int{}, &workload.Reason{Kind: workload.ReasonPlaceLost}
	bound := b.bound(e)
	for _, p := range e.Placements {
		n := b.nodes[admission.NodeKey{Cluster: e.Cluster, Name: p.Node}]
		if n == nil || b.sound(n) {
			continue
		}
		at := slot{p.PodSet, p.Node}
		open := max(0, p.Pods-bound[at])
		if p.PodSet == submitterOf(e) && b.seen(e, p.PodSet) || e.scaledDown(p.PodSet, bound) {
			open = 0 // it is there, or has ended; or nobody wants more pods now
		}
		refusal := n.Refuses(e.template(p.PodSet))
		switch {
		case n.lost():
			moves[at], reason.Kind, reason.Message = p.Pods, workload.ReasonNodeLost, lostBecause(n, b.grace)
		case n.Drained():
			moves[at], reason.Kind, reason.Message = p.Pods, workload.ReasonDrained, fmt.Sprintf("node %s is drained", p.Node)
		case refusal != "" && open > 0:
			moves[at], reason.Message = open, fmt.Sprintf("node %s takes its pods no longer: %s", p.Node, refusal)
		case n.excess() != "" && open > 0:
			moves[at], reason.Message = open, fmt.Sprintf("the place on node %s is taken: there is not enough %s", p.Node, n.excess())
		}
	}
	return moves, reason
}

// scaledDown reports whether a pod set has as many pods as its owner wants.
func (e *entry) scaledDown(set string, bound map[slot]int) bool {
	size, known := e.sizes[set]
	for at, pods := range bound {
		if at.PodSet == set {
			size -= pods
		}
	}
	return known && size <= 0
}

func lostBecause(n *node, grace time.Duration) string {
	if !n.present {
		return fmt.Sprintf("node %s of cluster %s is gone", n.Name, n.Cluster)
	}
	return fmt.Sprintf("node %s of cluster %s has not been ready for %s", n.Name, n.Cluster, grace)
}

// seen reports whether a pod of the set has been seen, whatever became of it.
func (b *Book) seen(e *entry, set string) bool {
	g := b.gangs[gangKey{e.Cluster, e.ID}]
	return g != nil && slices.ContainsFunc(g.pods, func(p event.GangPod) bool { return p.Attempt == e.Attempt && p.PodSet == set })
}

func submitterOf(e *entry) string { return setOf(e, workload.RoleSubmitter) }

func setOf(e *entry, role string) string {
	for _, set := range e.PodSets {
		if set.Role == role {
			return set.Name
		}
	}
	return ""
}

func (e *entry) template(podSet string) *workload.Template {
	for i := range e.PodSets {
		if e.PodSets[i].Name == podSet {
			return &e.PodSets[i].Template
		}
	}
	return &workload.Template{}
}

// move gives the pods of a gang that lost their places proven other ones, in the
// same transaction in which the old ones are given back; when there are none for
// all of them the gang is evicted whole. So it is when its policy says so, when
// the lost pod is the head of a running gang, with which Ray loses its state, or
// the job's submitter, whose place is written in the object.
func (b *Book) move(e *entry, now time.Time) {
	e.moveAt, e.EvictAt = time.Time{}, time.Time{}
	moves, reason := b.misplaced(e)
	if len(moves) == 0 {
		return
	}
	if e.fixed {
		b.stay(e, reason.Message, now)
		return
	}
	running := e.Phase == workload.Running
	for at := range moves {
		if at.PodSet == submitterOf(e) || running && at.PodSet == setOf(e, workload.RoleHead) {
			b.tearDown(e, workload.Evicting, reason, now)
			return
		}
	}
	if running && b.rules(e).OnPodLoss == workload.EvictOnLoss {
		b.tearDown(e, workload.Evicting, reason, now)
		return
	}
	if !b.swap(e, moves) {
		reason.Message += ", and there is no other place"
		b.tearDown(e, workload.Evicting, reason, now)
		return
	}
	if running {
		e.Reason, e.broken.noted = &workload.Reason{Kind: workload.ReasonPodLost, Message: reason.Message + "; its pods get other places"}, true
	}
	b.tell(e, now)
	b.desire(e, event.Present, now)
	b.resize(e, now)
}

// swap reserves other places instead of the given ones, or changes nothing. A
// gang of which no pod is bound yet may get other places for all its pods, when
// that is what it takes.
func (b *Book) swap(e *entry, moves map[slot]int) bool {
	if !e.Interdependent() && b.swapThese(e, moves) {
		return true
	}
	if len(b.bound(e)) > 0 {
		return false
	}
	all := map[slot]int{}
	for _, p := range e.Placements {
		if p.PodSet != submitterOf(e) { // its place is written in the object
			all[slot{p.PodSet, p.Node}] = p.Pods
		}
	}
	return b.swapThese(e, all)
}

func (b *Book) swapThese(e *entry, moves map[slot]int) bool {
	var kept []workload.Placement
	for _, p := range e.Placements {
		if p.Pods -= moves[slot{p.PodSet, p.Node}]; p.Pods > 0 {
			kept = append(kept, p)
		}
	}
	rest := slices.Clone(e.PodSets) // the pods that need a place
	for i := range rest {
		rest[i].Count = 0
		for at, pods := range moves {
			if at.PodSet == rest[i].Name {
				rest[i].Count += pods
			}
		}
		b.stayNear(e, &rest[i], kept)
	}
	placements, fits := b.admission.Move(e.ID, kept, rest)
	if !fits {
		return false
	}
	b.charge(e, -1)
	e.Placements = placements
	b.charge(e, 1)
	e.yield = nil
	b.moved(e)
	return true
}

// stayNear keeps the moved pods of a set in the topology domain of those that
// stay, when the set is required to be in one.
func (b *Book) stayNear(e *entry, set *workload.PodSet, kept []workload.Placement) {
	if set.Topology == nil || set.Topology.Mode != workload.TopologyRequired {
		return
	}
	i := slices.IndexFunc(kept, func(p workload.Placement) bool { return p.PodSet == set.Name })
	if i < 0 {
		return
	}
	selector := maps.Clone(set.Template.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	selector[set.Topology.Level] = b.nodes[admission.NodeKey{Cluster: e.Cluster, Name: kept[i].Node}].Labels[set.Topology.Level]
	set.Template.NodeSelector = selector
}
