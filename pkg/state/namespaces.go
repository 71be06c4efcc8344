package state

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
)

// observedNamespaces has the versions of the namespaces that clusters have reported, by
// cluster and name; package admission has their labels. Like observed pods they are not
// stored: each term reads the last values of all clusters before it decides.
type observedNamespaces map[string]map[string]event.Version

// Namespace applies the present state of a namespace.
func (s *State) Namespace(o *event.NamespaceObserved, now time.Time) {
	if s.fromReplacedWatcher(o.Cluster, o.Version) {
		return
	}
	s.hear(o.Cluster, Watcher, now)
	of := s.namespaces[o.Cluster]
	if of == nil {
		of = map[string]event.Version{}
		s.namespaces[o.Cluster] = of
	}
	switch version, known := of[o.Namespace]; {
	case known && !version.Before(o.Version):
	case o.Gone:
		delete(of, o.Namespace)
		s.admission.RemoveNamespace(o.Cluster, o.Namespace)
	case !known && len(of) >= maxNamespaces:
		s.observed.refused++
	default:
		of[o.Namespace] = o.Version
		s.admission.SetNamespace(o.Cluster, o.Namespace, admission.Namespace{Labels: o.Labels, Unread: o.Unread, Defaults: o.Defaults, Ranges: o.Ranges})
	}
}

// namespacesSynced takes in that a watcher has published all namespaces: those that only an
// earlier session published are gone.
func (s *State) namespacesSynced(o *event.CapacitySynced) {
	if !o.Namespaces {
		return // it is of an earlier version, or may not list namespaces
	}
	of := s.namespaces[o.Cluster]
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name].Session < o.Version.Session {
			delete(of, name)
			s.admission.RemoveNamespace(o.Cluster, name)
		}
	}
	s.admission.NamespacesKnown(o.Cluster)
}
