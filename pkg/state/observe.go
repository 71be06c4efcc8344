package state

import (
	"reflect"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// fromReplacedWatcher reports whether an observation is of a watcher that another one has
// replaced, which has told everything since. Until it has, versions tell.
func (m *State) fromReplacedWatcher(cluster string, v event.Version) bool {
	return v.Session < m.watchers[cluster]
}

// Node takes in a node's present state.
func (m *State) Node(o *event.NodeObserved, now time.Time) {
	if m.fromReplacedWatcher(o.Node.Cluster, o.Version) {
		return
	}
	key := admission.NodeKey{Cluster: o.Node.Cluster, Name: o.Node.Name}
	n := m.nodes[key]
	if n == nil {
		if m.observed.nodesFull(key.Cluster) {
			return
		}
		n = &node{reserved: resource.List{}, unreserved: m.unreservedOn(key), holders: map[workload.ID]int{}}
		m.putNode(key, n)
	} else if !n.version.Before(o.Version) {
		return
	}
	again := n.present && reflect.DeepEqual(n.Node, o.Node)
	n.Node, n.version, n.present = o.Node, o.Version, true
	m.updateReadiness(key, now)
	m.inquiries.watcherAnswers(subject{cluster: key.Cluster, node: key.Name}, o.Answers)
	if !again { // what is only said again is stored already
		m.changed.node(key)
	}
	m.syncNode(key)
	m.healing.scheduleReplacement(key, now)
}

func (m *State) updateReadiness(key admission.NodeKey, now time.Time) {
	n := m.nodes[key]
	if n.Ready || !n.present {
		n.notReadySince, n.overdue = time.Time{}, false
		delete(m.notReady, key)
		return
	}
	m.notReady[key] = true
	if n.notReadySince.IsZero() {
		n.notReadySince = now
	}
}

// NodeRemoved takes a node away; the gangs that have a place there lose it.
func (m *State) NodeRemoved(o *event.NodeRemoved, now time.Time) {
	key := admission.NodeKey{Cluster: o.Cluster, Name: o.Node}
	if n := m.nodes[key]; n != nil && n.version.Before(o.Version) && !m.fromReplacedWatcher(o.Cluster, o.Version) {
		n.version = o.Version
		m.removeNode(key, now)
	}
}

func (m *State) removeNode(key admission.NodeKey, now time.Time) {
	n := m.nodes[key]
	if !n.present {
		return
	}
	n.present = false
	n.Node = capacity.Node{Cluster: key.Cluster, Name: key.Name}
	m.updateReadiness(key, now)
	m.changed.node(key)
	m.syncNode(key)
	m.healing.scheduleReplacement(key, now)
}

// Synced takes in a watcher's full list: what is older and not on it is gone.
func (m *State) Synced(o *event.CapacitySynced, now time.Time) {
	if m.fromReplacedWatcher(o.Cluster, o.Version) {
		return
	}
	m.watchers[o.Cluster] = o.Version.Session
	listed := map[string]bool{}
	for _, name := range o.Nodes {
		listed[name] = true
	}
	for _, key := range m.nodeKeys() {
		if n := m.nodes[key]; key.Cluster == o.Cluster && n.version.Before(o.Version) && !listed[key.Name] {
			n.version = o.Version
			m.removeNode(key, now)
		}
	}
	seen := map[workload.ID]bool{}
	for _, id := range o.Gangs {
		seen[id] = true
	}
	var unseen []workload.ID
	for key, g := range m.gangs {
		if key.cluster == o.Cluster && g.version.Before(o.Version) && !seen[key.workload] {
			unseen = append(unseen, key.workload)
		}
	}
	slices.Sort(unseen) // what follows is decided in this order
	for _, id := range unseen {
		m.podsGone(gangKey{o.Cluster, id}, o.Version, now)
	}
}

// podsGone takes away all pods of a workload.
func (m *State) podsGone(key gangKey, v event.Version, now time.Time) {
	g := m.gangs[key]
	before := g.pods
	m.observed.pods[key.cluster] -= len(g.seen)
	g.version, g.seen, g.pods, g.others, g.chains = v, nil, nil, nil, nil
	m.countUnreserved(key)
	if e := m.live.Get(key.workload); e != nil && e.attemptState != nil && e.Cluster == key.cluster && len(before) > 0 && !m.frozen(e) {
		m.evaluate(e, &podNews{before: before}, now)
	}
}

// Gang takes in what is seen of a workload's pods, and when that was said; zero
// is now.
func (m *State) Gang(o *event.GangObserved, said, now time.Time) {
	key := gangKey{o.Cluster, o.Workload}
	old := m.gangs[key]
	if old != nil && !old.version.Before(o.Version) || m.fromReplacedWatcher(o.Cluster, o.Version) {
		return // old news
	}
	if !m.observed.replacePods(key.cluster, old, o.Pods) {
		return
	}
	seen := &gang{version: o.Version, seen: o.Pods, chains: o.Chains, observedAt: reportedAt(said, now)}
	m.classifyPods(key, seen)
	if old != nil {
		seen.unreservedOn, seen.misplaced = old.unreservedOn, old.misplaced
	}
	m.gangs[key] = seen
	m.countUnreserved(key)
	if e := m.live.Get(o.Workload); e != nil && e.attemptState != nil && e.Cluster == o.Cluster && !m.frozen(e) {
		m.inquiries.watcherAnswers(subject{cluster: o.Cluster, workload: o.Workload, attempt: e.Attempt}, o.Answers)
		news := &podNews{now: seen.pods}
		if old != nil {
			news.before = old.pods
		}
		m.evaluate(e, news, now)
	}
}
