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

// Node applies a node's present state.
func (s *State) Node(o *event.NodeObserved, now time.Time) {
	if s.fromReplacedWatcher(o.Node.Cluster, o.Version) {
		return
	}
	s.hear(o.Node.Cluster, Watcher, now)
	key := admission.NodeKey{Cluster: o.Node.Cluster, Name: o.Node.Name}
	if s.left(key) {
		return
	}
	n := s.nodes[key]
	if n == nil {
		if s.observed.nodesFull(key.Cluster) {
			return
		}
		n = &node{reserved: resource.List{}, unreserved: s.unreservedOn(key), holders: map[workload.ID]int{}}
		s.putNode(key, n)
	} else if !n.version.Before(o.Version) {
		return
	}
	again := n.present && reflect.DeepEqual(n.Node, o.Node)
	wasReady := n.Ready
	n.Node, n.version, n.present = o.Node, o.Version, true
	s.updateReadiness(key, now)
	s.inquiries.nodeAnswered(key, o.Answers)
	if !again { // the same observation again is stored already
		s.changed.node(key)
	}
	s.syncNode(key)
	s.healing.scheduleReplacement(key, now)
	if n.Ready != wasReady {
		s.healing.explainNode(n, now)
	}
}

// left reports whether what a cluster reports of its nodes does not count: it has left, and
// no gang has a place there.
func (s *State) left(key admission.NodeKey) bool {
	n := s.nodes[key]
	return s.admission.Quota().Left(key.Cluster) && (n == nil || len(n.holders) == 0)
}

func (s *State) updateReadiness(key admission.NodeKey, now time.Time) {
	n := s.nodes[key]
	if n.Ready || !n.present {
		n.notReadySince, n.overdue = time.Time{}, false
		delete(s.notReady, key)
		return
	}
	s.notReady[key] = true
	if n.notReadySince.IsZero() {
		n.notReadySince = now
	}
}

// NodeRemoved removes a node; the gangs that have a place there lose it.
func (s *State) NodeRemoved(o *event.NodeRemoved, now time.Time) {
	key := admission.NodeKey{Cluster: o.Cluster, Name: o.Node}
	if n := s.nodes[key]; n != nil && n.version.Before(o.Version) && !s.fromReplacedWatcher(o.Cluster, o.Version) {
		n.version = o.Version
		s.removeNode(key, now)
	}
}

func (s *State) removeNode(key admission.NodeKey, now time.Time) {
	n := s.nodes[key]
	if !n.present {
		return
	}
	n.present = false
	n.Node = capacity.Node{Cluster: key.Cluster, Name: key.Name}
	s.updateReadiness(key, now)
	s.changed.node(key)
	s.syncNode(key)
	s.healing.scheduleReplacement(key, now)
}

// Synced applies a watcher's full list: what is older and not on it is gone.
func (s *State) Synced(o *event.CapacitySynced, now time.Time) {
	if s.fromReplacedWatcher(o.Cluster, o.Version) {
		return
	}
	s.watchers[o.Cluster] = o.Version.Session
	s.hear(o.Cluster, Watcher, now)
	s.namespacesSynced(o)
	s.admission.SetCluster(o.Cluster)
	s.admission.SetServed(o.Cluster, o.Kinds)
	listed := map[string]bool{}
	for _, name := range o.Nodes {
		listed[name] = true
	}
	for _, key := range s.nodeKeys() {
		if n := s.nodes[key]; key.Cluster == o.Cluster && n.version.Before(o.Version) && !listed[key.Name] {
			n.version = o.Version
			s.removeNode(key, now)
		}
	}
	seen := map[workload.ID]bool{}
	for _, id := range o.Gangs {
		seen[id] = true
	}
	var unseen []workload.ID
	for key, g := range s.gangs {
		if key.cluster == o.Cluster && g.version.Before(o.Version) && !seen[key.workload] {
			unseen = append(unseen, key.workload)
		}
	}
	slices.Sort(unseen) // what follows is decided in this order
	for _, id := range unseen {
		s.podsGone(gangKey{o.Cluster, id}, o.Version, now)
	}
}

// podsGone takes away all pods of a workload.
func (s *State) podsGone(key gangKey, v event.Version, now time.Time) {
	g := s.gangs[key]
	before := g.pods
	s.observed.pods[key.cluster] -= len(g.seen)
	g.version, g.seen, g.pods, g.others, g.chains = v, nil, nil, nil, nil
	s.countUnreserved(key)
	if e := s.live.Get(key.workload); e != nil && e.attemptState != nil && e.Cluster == key.cluster && len(before) > 0 && !s.frozen(e) {
		s.evaluate(e, &podNews{before: before}, now)
	}
}

// Gang applies what is observed of a workload's pods, and when that was reported; zero
// is now.
func (s *State) Gang(o *event.GangObserved, at, now time.Time) {
	key := gangKey{o.Cluster, o.Workload}
	old := s.gangs[key]
	if old != nil && !old.version.Before(o.Version) || s.fromReplacedWatcher(o.Cluster, o.Version) {
		return // old news
	}
	s.hear(o.Cluster, Watcher, now)
	if !s.observed.replacePods(key.cluster, old, o.Pods) {
		return
	}
	seen := &gang{version: o.Version, seen: o.Pods, chains: o.Chains, observedAt: reportedAt(at, now)}
	s.classifyPods(key, seen)
	if old != nil {
		seen.unreservedOn, seen.misplaced = old.unreservedOn, old.misplaced
	}
	s.gangs[key] = seen
	s.countUnreserved(key)
	if e := s.live.Get(o.Workload); e != nil && e.attemptState != nil && e.Cluster == o.Cluster && !s.frozen(e) {
		s.inquiries.watcherAnswered(e, o.Answers, now)
		news := &podNews{now: seen.pods}
		if old != nil {
			news.before = old.pods
		}
		s.evaluate(e, news, now)
	}
}
