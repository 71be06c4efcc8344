package admission

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// A ClusterQueue may select the namespaces that use it by their labels. A namespace of the
// same name may have other labels in another cluster, so it is asked of each cluster: a
// workload gets places only where its namespace is selected. One whose namespace is selected
// nowhere waits and lets others pass, as in Kueue; running gangs stay.

// Namespace is what is known of a namespace of a cluster.
type Namespace struct {
	Labels map[string]string // not changed any more
	// Unread is the number of its labels when these are too many to be reported. No selector
	// matches it.
	Unread int
	// Defaults are what containers ask for that ask none of a resource (LimitRanges).
	Defaults resource.List
	// Ranges are its LimitRanges; none when they are not known.
	Ranges []workload.LimitRange
}

// unmet returns which requirement of the selector the namespace does not meet; empty for none.
func (n Namespace) unmet(s *quota.LabelSelector) string {
	if n.Unread > 0 {
		return fmt.Sprintf("it has %d labels, too many to be compared", n.Unread)
	}
	return s.Unmet(n.Labels)
}

// namespaces are those of all clusters.
type namespaces struct {
	of    map[string]map[string]Namespace // by cluster and name
	known map[string]bool                 // clusters that have reported all of theirs
	left  map[string]bool                 // clusters that have left; replaced, never changed
	// required: one that has not been reported may not use a queue that selects. While a
	// term begins they may, because their reports are still to be read.
	required bool
	judged   map[judgedKey]string // see beyond
}

func newNamespaces() *namespaces {
	return &namespaces{of: map[string]map[string]Namespace{}, known: map[string]bool{}, judged: map[judgedKey]string{}}
}

func (n *namespaces) clone() *namespaces {
	c := newNamespaces()
	c.known, c.left, c.required = maps.Clone(n.known), n.left, n.required
	for cluster, names := range n.of {
		c.of[cluster] = maps.Clone(names)
	}
	return c
}

// SetNamespace sets what is known of a namespace of a cluster, which the caller does not change
// afterwards.
func (s *State) SetNamespace(cluster, name string, n Namespace) {
	if s.namespaces.of[cluster] == nil {
		s.namespaces.of[cluster] = map[string]Namespace{}
	}
	old, was := s.namespaces.of[cluster][name]
	s.namespaces.of[cluster][name] = n
	s.events.defaults = s.events.defaults || !old.Defaults.Equal(n.Defaults)
	s.noteRanges(cluster, name, old.Ranges, n.Ranges)
	s.events.namespaces = s.events.namespaces || slices.ContainsFunc(s.sorted, func(q *queue) bool {
		selector := q.quota.Selector()
		return selector != nil && (!was || old.unmet(selector) != n.unmet(selector))
	})
}

// RemoveNamespace removes a namespace of a cluster.
func (s *State) RemoveNamespace(cluster, name string) {
	old, known := s.namespaces.of[cluster][name]
	if !known {
		return
	}
	delete(s.namespaces.of[cluster], name)
	s.events.defaults = s.events.defaults || len(old.Defaults) > 0
	s.noteRanges(cluster, name, old.Ranges, nil)
	s.events.namespaces = s.events.namespaces || slices.ContainsFunc(s.sorted, func(q *queue) bool { return q.quota.Selector() != nil })
}

// noteRanges has answers dropped that other LimitRanges of a namespace have made wrong.
func (s *State) noteRanges(cluster, namespace string, old, now []workload.LimitRange) {
	if workload.SameRanges(old, now) {
		return
	}
	maps.DeleteFunc(s.namespaces.judged, func(key judgedKey, _ string) bool { return key.cluster == cluster && key.namespace == namespace })
	s.events.ranges.note(namespace)
}

func (r *rangesChanged) note(namespace string) {
	if r.names == nil {
		r.names = map[string]bool{}
	}
	r.names[namespace] = true
}

// NamespacesKnown reports that a cluster has reported all of its namespaces.
func (s *State) NamespacesKnown(cluster string) {
	s.events.namespaces = s.events.namespaces || !s.namespaces.known[cluster]
	s.namespaces.known[cluster] = true
}

// RequireNamespaces records that everything reported before the term has been read: from then
// on a namespace that was not reported may not use a queue that selects.
func (s *State) RequireNamespaces() {
	s.namespaces.required, s.events.namespaces = true, true
}

// mayUse reports whether workloads of a namespace may use the queue in a cluster.
func (s *State) mayUse(q *queue, namespace, cluster string) bool {
	selector := q.quota.Selector()
	if selector == nil {
		return true
	}
	n, reported := s.namespaces.of[cluster][namespace]
	if !reported {
		return !s.namespaces.required
	}
	return n.unmet(selector) == ""
}

func (s *State) whyNotSelected(q *queue, namespace, cluster string) string {
	n, reported := s.namespaces.of[cluster][namespace]
	what := "namespace doesn't match ClusterQueue selector: "
	switch {
	case !reported && !s.namespaces.known[cluster]:
		what = fmt.Sprintf("the namespaces of cluster %q have not been reported yet, and ClusterQueue %q selects by their labels; check that its capacity-watcher runs and may list namespaces", cluster, q.name)
	case !reported:
		what += fmt.Sprintf("there is no namespace %q in cluster %q", namespace, cluster)
	default:
		what += fmt.Sprintf("ClusterQueue %q does not admit namespace %q of cluster %q: %s", q.name, namespace, cluster, n.unmet(q.quota.Selector()))
	}
	return what
}
