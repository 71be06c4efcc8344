package admission

import (
	"maps"

	"muster.dev/muster/pkg/spec/workload"
)

// A cluster that does not serve the kinds of a workload's objects cannot create them, so it
// takes no pods of it. Where no cluster serves them the workload waits as one that never fits:
// the definition of a kind may be installed later. Watchers report what their clusters serve;
// of a cluster whose watcher does not, every kind counts as served.

// SetServed records which kinds a cluster serves; empty is unknown.
func (s *State) SetServed(cluster string, kinds []workload.ObjectKind) {
	before, next := s.served[cluster], servedKinds(nil)
	if len(kinds) > 0 {
		next = make(servedKinds, len(kinds))
		for _, kind := range kinds {
			next[kind] = true
		}
	}
	if maps.Equal(before, next) {
		return
	}
	s.served = maps.Clone(s.served)
	if s.served == nil {
		s.served = map[string]servedKinds{}
	}
	if s.served[cluster] = next; next == nil {
		delete(s.served, cluster)
	}
	for _, sig := range s.signatures { // a new kind that nothing waiting has changes no answer
		if before.lacking(sig.needs) != next.lacking(sig.needs) {
			s.events.clustersChanged, s.events.ranges.all = true, true // whom LimitRanges hold depends on it
			return
		}
	}
}

// servedKinds are the kinds that a cluster serves; nil is unknown.
type servedKinds map[workload.ObjectKind]bool

// lacking returns the first of the kinds that is not served; empty when all may be.
func (k servedKinds) lacking(kinds []workload.ObjectKind) workload.ObjectKind {
	if k == nil {
		return ""
	}
	for _, kind := range kinds {
		if !k[kind] && !k[kind.Any()] {
			return kind
		}
	}
	return ""
}

// unserved returns a kind of the workload's objects that the cluster does not serve; empty
// when it may serve all. A gang that grows has its objects.
func (s *State) unserved(w *Waiting, cluster string) workload.ObjectKind {
	if w.Grows {
		return ""
	}
	return s.served[cluster].lacking(w.signature.needs)
}
