package book

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// replaced reports whether an observation is of a watcher that another one has
// replaced, which has told everything since. Until it has, versions tell.
func (b *Book) replaced(cluster string, v event.Version) bool { return v.Session < b.watchers[cluster] }

// Node takes in a node's present state.
func (b *Book) Node(o *event.NodeObserved, now time.Time) {
	if b.replaced(o.Node.Cluster, o.Version) {
		return
	}
	key := admission.NodeKey{Cluster: o.Node.Cluster, Name: o.Node.Name}
	n := b.nodes[key]
	if n == nil {
		if b.told.full(key.Cluster) {
			return
		}
		n = &node{reserved: resource.List{}, strays: b.straysOn(key), holders: map[workload.ID]int{}}
		b.putNode(key, n)
	} else if !n.version.Before(o.Version) {
		return
	}
	again := n.present && reflect.DeepEqual(n.Node, o.Node)
	n.Node, n.version, n.present = o.Node, o.Version, true
	b.noteReadiness(key, now)
	b.watcherAnswers(subject{cluster: key.Cluster, node: key.Name}, o.Answers)
	if !again { // what is only said again is stored already
		b.changed.node(key)
	}
	b.offer(key)
	b.losePlaces(key, now)
}

func (b *Book) noteReadiness(key admission.NodeKey, now time.Time) {
	n := b.nodes[key]
	if n.Ready || !n.present {
		n.notReadySince, n.overdue = time.Time{}, false
		delete(b.notReady, key)
		return
	}
	b.notReady[key] = true
	if n.notReadySince.IsZero() {
		n.notReadySince = now
	}
}

// NodeRemoved takes a node away; the gangs that have a place there lose it.
func (b *Book) NodeRemoved(o *event.NodeRemoved, now time.Time) {
	key := admission.NodeKey{Cluster: o.Cluster, Name: o.Node}
	if n := b.nodes[key]; n != nil && n.version.Before(o.Version) && !b.replaced(o.Cluster, o.Version) {
		n.version = o.Version
		b.loseNode(key, now)
	}
}

func (b *Book) loseNode(key admission.NodeKey, now time.Time) {
	n := b.nodes[key]
	if !n.present {
		return
	}
	n.present = false
	n.Node = capacity.Node{Cluster: key.Cluster, Name: key.Name}
	b.noteReadiness(key, now)
	b.changed.node(key)
	b.offer(key)
	b.losePlaces(key, now)
}

// Synced takes in a watcher's full list: what is older and not on it is gone.
func (b *Book) Synced(o *event.CapacitySynced, now time.Time) {
	if b.replaced(o.Cluster, o.Version) {
		return
	}
	b.watchers[o.Cluster] = o.Version.Session
	listed := map[string]bool{}
	for _, name := range o.Nodes {
		listed[name] = true
	}
	for _, key := range b.nodeKeys() {
		if n := b.nodes[key]; key.Cluster == o.Cluster && n.version.Before(o.Version) && !listed[key.Name] {
			n.version = o.Version
			b.loseNode(key, now)
		}
	}
	seen := map[workload.ID]bool{}
	for _, id := range o.Gangs {
		seen[id] = true
	}
	for key, g := range b.gangs {
		if key.cluster == o.Cluster && g.version.Before(o.Version) && !seen[key.workload] {
			b.told.pods[key.cluster] -= len(g.seen)
			g.version, g.seen, g.pods, g.others, g.chains = o.Version, nil, nil, nil, nil
			b.countStrays(key)
		}
	}
}

// Gang takes in what is seen of a workload's pods, and when that was said; zero
// is now.
func (b *Book) Gang(o *event.GangObserved, said, now time.Time) {
	key := gangKey{o.Cluster, o.Workload}
	old := b.gangs[key]
	if old != nil && !old.version.Before(o.Version) || b.replaced(o.Cluster, o.Version) {
		return // old news
	}
	if !b.told.takes(key.cluster, old, o.Pods) {
		return
	}
	seen := &gang{version: o.Version, seen: o.Pods, chains: o.Chains, said: past(said, now)}
	b.tellApart(key, seen)
	if old != nil {
		seen.strayOn, seen.beside = old.strayOn, old.beside
	}
	b.gangs[key] = seen
	b.countStrays(key)
	if e := b.live.Get(o.Workload); e != nil && e.course != nil && e.Cluster == o.Cluster && !b.kept(e) {
		b.watcherAnswers(subject{cluster: o.Cluster, workload: o.Workload, attempt: e.Attempt}, o.Answers)
		b.checkExits(e, now)
		b.checkRunning(e, now)
		if e.Phase == workload.Running {
			if old != nil {
				b.noteLoss(e, old.pods, seen.pods, now)
			}
			b.noteHead(e, seen.pods, now)
			b.checkWhole(e, now)
		}
		b.checkPlaces(e, now)
		b.resize(e, now)
		b.noteBeside(e, now)
		b.checkIdle(e)
		b.schedule(e)
	}
}

// checkPlaces has places looked at that pods have left and that are barred to
// those that replace them.
func (b *Book) checkPlaces(e *entry, now time.Time) {
	if tearingDown(e) || !e.Holding || !e.moveAt.IsZero() {
		return
	}
	if moves, _ := b.misplaced(e); len(moves) > 0 {
		e.moveAt = now.Add(settle)
	}
}

// checkRunning notes that all pods of a gang are ready. The submitter is not
// waited for: KubeRay creates it after the cluster is ready.
func (b *Book) checkRunning(e *entry, now time.Time) {
	if e.Phase != workload.Admitted && e.Phase != workload.Dispatched {
		return
	}
	if ready, all := b.readiness(e); ready < all {
		return
	}
	e.Phase, e.Reason, e.Times.Running = workload.Running, nil, now
	if e.Times.Dispatched.IsZero() {
		e.Times.Dispatched = now
	}
	b.tell(e, now)
}

// readiness counts the pods of a started gang that are ready on a node, and all
// that are waited for.
func (b *Book) readiness(e *entry) (ready, all int) {
	counts := map[string]int{}
	if g := b.gangs[gangKey{e.Cluster, e.ID}]; g != nil {
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

// wanted is how many pods of a set are waited for: as many as have places, or
// fewer when the owner of a RayCluster, or Ray's autoscaler, wants fewer now.
func (e *entry) wanted(set workload.PodSet) int {
	if size, known := e.sizes[set.Name]; known {
		return min(size, set.AtStart())
	}
	return set.AtStart()
}

// countStrays charges to nodes what a workload's pods take beyond what is
// reserved for it there: pods that stayed after their reservation, or landed
// elsewhere.
func (b *Book) countStrays(key gangKey) {
	g := b.gangs[key]
	if g == nil {
		return
	}
	beyond := map[string]resource.List{}
	for _, pod := range g.pods {
		if pod.Holds() {
			beyond[pod.Node] = beyond[pod.Node].Plus(pod.Requests)
		}
	}
	if e := b.live.Get(key.workload); e != nil && e.Cluster == key.cluster {
		for _, p := range e.Placements {
			beyond[p.Node] = beyond[p.Node].Minus(e.requests(p.PodSet).Times(int64(p.Pods)))
		}
	}
	for name, amounts := range beyond {
		beyond[name] = positive(amounts)
	}
	for _, pod := range g.others {
		if pod.Holds() {
			beyond[pod.Node] = beyond[pod.Node].Plus(pod.Requests)
		}
	}
	for name := range g.strayOn {
		if _, listed := beyond[name]; !listed {
			beyond[name] = nil
		}
	}
	g.strayOn = map[string]bool{}
	for name, amounts := range beyond {
		on := admission.NodeKey{Cluster: key.cluster, Name: name}
		if len(amounts) > 0 {
			g.strayOn[name] = true
		}
		b.told.strays(on, key.workload, len(amounts) > 0)
		b.setStray(on, key.workload, amounts)
	}
	b.countBeside(key)
	if len(g.seen) == 0 && b.live.Get(key.workload) == nil {
		delete(b.gangs, key)
	}
}

func (b *Book) setStray(key admission.NodeKey, id workload.ID, stray resource.List) {
	n := b.nodes[key]
	if n == nil || stray.Equal(n.strays[id]) {
		return
	}
	if len(stray) == 0 {
		delete(n.strays, id)
	} else {
		n.strays[id] = stray
	}
	b.changed.node(key)
	b.offer(key)
}

// straysOn returns what observed gangs take on a node that was not known.
func (b *Book) straysOn(key admission.NodeKey) map[workload.ID]resource.List {
	strays := map[workload.ID]resource.List{}
	for id := range b.told.on[key] {
		for _, pod := range b.gangs[gangKey{key.Cluster, id}].seen {
			if pod.Node == key.Name && pod.Holds() {
				strays[id] = strays[id].Plus(pod.Requests)
			}
		}
	}
	return strays
}

func (b *Book) nodeKeys() []admission.NodeKey {
	return slices.SortedFunc(maps.Keys(b.nodes), compareKeys)
}

func compareKeys(x, y admission.NodeKey) int {
	return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Name, y.Name))
}

func (b *Book) inOrder() []*entry {
	return slices.SortedFunc(b.live.All(), func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
}

// startedInOrder is inOrder without those who wait: there may be a million of them.
func (b *Book) startedInOrder() []*entry {
	started := make([]*entry, 0, b.started)
	for e := range b.live.All() {
		if e.course != nil {
			started = append(started, e)
		}
	}
	slices.SortFunc(started, func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	return started
}

func positive(l resource.List) resource.List {
	above := resource.List{}
	for name, amount := range l {
		if amount > 0 {
			above[name] = amount
		}
	}
	return above
}
