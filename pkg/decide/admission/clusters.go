package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// A gang lives wholly in one cluster. It may be in each that its queue and its selector
// allow, that offers its flavors, that no operator has cordoned and that reports. Of these it
// goes to one where it fits now without an eviction: to one that it prefers, of those to the
// cheapest, and of equally cheap ones to the one that its places fragment least.

// mostCompared is how many equally cheap clusters with room are compared for a gang, the
// fullest first. Each costs a search for places.
const mostCompared = 4

// SetSilent records which clusters do not report, and since when. Nothing new is started in
// them; gangs that run there stay.
func (s *State) SetSilent(since map[string]time.Time) {
	if maps.EqualFunc(s.silent, since, time.Time.Equal) {
		return
	}
	s.silent = maps.Clone(since) // copies of the state share the old one
	s.events.clustersChanged = true
}

// SetUncleared records which of the silent clusters report again, but have not yet reported that nothing
// is left there of what was started elsewhere meanwhile.
func (s *State) SetUncleared(clusters map[string]bool) {
	if maps.Equal(s.uncleared, clusters) {
		return
	}
	s.uncleared = maps.Clone(clusters)
	s.events.clustersChanged = true
}

// Clusters lists the clusters that have reported, by name.
func (s *State) Clusters() []string { return slices.Clone(s.clusters) }

// Silent returns since when a cluster does not report; zero for one that does.
func (s *State) Silent(cluster string) time.Time { return s.silent[cluster] }

// noneReports reports whether all clusters are silent, so that nothing can start.
func (s *State) noneReports() bool {
	return len(s.silent) > 0 && !slices.ContainsFunc(s.clusters, func(c string) bool { return s.silent[c].IsZero() })
}

// isUnsettled reports whether a gang keeps the nomination of an earlier term until a cluster
// reports. Its stored reason names that nomination, and is how the next leader knows it.
func (s *State) isUnsettled(w *Waiting) bool { return slices.Contains(s.unsettled, w) }

// Uncleared reports whether a cluster reports again, but has not yet said that nothing is left
// there.
func (s *State) Uncleared(cluster string) bool { return s.uncleared[cluster] }

// barred returns why a cluster takes no pods of the workload now; empty when it may.
func (s *State) barred(w *Waiting, cluster string) string {
	if why := s.excluded(w, cluster); why != "" {
		return why
	}
	if s.uncleared[cluster] {
		return fmt.Sprintf("cluster %q is back, and has not yet reported that nothing is left there", cluster)
	}
	if since := s.silent[cluster]; !since.IsZero() {
		return fmt.Sprintf("cluster %q has not reported since %s", cluster, since.UTC().Format(time.RFC3339))
	}
	return ""
}

// excluded returns why a cluster takes no pods of the workload, whether it reports or not.
func (s *State) excluded(w *Waiting, cluster string) string {
	selector, selects := s.selects(w, cluster)
	switch {
	case !selects:
		return fmt.Sprintf("cluster %q is not selected by %q", cluster, selector)
	case !s.tree.Takes(cluster, w.queue.name):
		return fmt.Sprintf("cluster %q takes no gangs of ClusterQueue %q", cluster, w.queue.name)
	}
	if namespace := w.Workload.Namespace; !s.mayUse(w.queue, namespace, cluster) {
		return s.whyNotSelected(w.queue, namespace, cluster)
	}
	if slices.Contains(w.beyond, cluster) {
		return s.whyBeyond(w.Workload, cluster)
	}
	if kind := s.unserved(w, cluster); kind != "" {
		return fmt.Sprintf("cluster %q serves no kind %s; install its definition there", cluster, kind)
	}
	if cordon := s.tree.Cordon(cluster); cordon != nil {
		return cordon.Message()
	}
	return ""
}

// Barred returns why a cluster takes no pods of a waiting workload, by the flavors by which it
// has asked for nodes; empty when it may.
func (s *State) Barred(id workload.ID, cluster string) string {
	w := s.waiting.Get(id)
	if w == nil {
		return ""
	}
	why := s.barred(w, cluster)
	if why == "" && w.Asked != nil {
		why = s.whyNotOffered(cluster, w.Asked.Flavors)
	}
	return why
}

// selects reports whether all pod sets of the workload select the cluster; if not, it
// returns the selector of one that does not.
func (s *State) selects(w *Waiting, cluster string) (not workload.ClusterSelector, all bool) {
	for _, set := range w.Workload.PodSets {
		if set.Clusters != "" && !s.tree.Selects(set.Clusters, cluster) {
			return set.Clusters, false
		}
	}
	return "", true
}

// mayBeBarred reports whether any cluster may be barred to the workload.
func (s *State) mayBeBarred(w *Waiting) bool {
	return s.tree.ChoosesClusters() || len(s.silent) > 0 || len(w.beyond) > 0 || w.queue.quota.Selector() != nil ||
		len(s.served) > 0 && slices.ContainsFunc(s.clusters, func(c string) bool { return s.unserved(w, c) != "" }) ||
		slices.ContainsFunc(w.Workload.PodSets, func(set workload.PodSet) bool { return set.Clusters != "" })
}

// candidates returns the clusters in which the workload may be at all: all, its home, or the
// one where it grows.
func (s *State) candidates(w *Waiting) []string {
	switch home := w.Workload.Home(); {
	case w.Grows:
	case home == "":
		return s.clusters
	case s.fleets[home] == nil:
		return nil
	default:
		return []string{home}
	}
	if g := s.started[w.Workload.ID]; g != nil && !g.Terminating {
		return []string{g.Cluster}
	}
	return nil
}

// clustersFor returns the clusters on which the workload may get places, those that it prefers
// first, of these the cheapest, and of equally cheap ones the fullest; of these, those without
// nodes come last. It may have no flavor that one of them offers.
func (s *State) clustersFor(w *Waiting) []string {
	all := s.candidates(w)
	if len(all) < 2 && !s.mayBeBarred(w) {
		return all
	}
	type ranked struct {
		name  string
		rank  rank
		idle  int64
		empty int // 1 without nodes
	}
	open := make([]ranked, 0, len(all))
	for _, name := range all {
		if s.barred(w, name) == "" {
			one := ranked{name: name, rank: s.rank(w, name), idle: s.fleets[name].Idle()}
			if s.fleets[name].Len() == 0 {
				one.empty = 1
			}
			open = append(open, one)
		}
	}
	slices.SortFunc(open, func(a, b ranked) int {
		return cmp.Or(a.rank.compare(b.rank), cmp.Compare(a.empty, b.empty), cmp.Compare(a.idle, b.idle), cmp.Compare(a.name, b.name))
	})
	names := make([]string, len(open))
	for i := range open {
		names[i] = open[i].name
	}
	return names
}

// mayRunIn reports whether the workload may get places on the cluster.
func (s *State) mayRunIn(w *Waiting, cluster string) bool {
	return slices.Contains(s.candidates(w), cluster) && s.barred(w, cluster) == ""
}

// shutOut reports whether a cluster does not take the workload now that may take it later
// without another configuration of clusters: it is cordoned or silent.
func (s *State) shutOut(w *Waiting) bool {
	return slices.ContainsFunc(s.candidates(w), func(cluster string) bool {
		out := s.tree.Cordon(cluster) != nil || !s.silent[cluster].IsZero()
		_, selects := s.selects(w, cluster)
		return out && selects && s.fleets[cluster].Len() > 0 && s.tree.Takes(cluster, w.queue.name) && s.mayUse(w.queue, w.Workload.Namespace, cluster) &&
			!slices.Contains(w.beyond, cluster)
	})
}

// rank is how good a cluster is for a workload, places aside. The lower is better.
type rank struct {
	away int // 1 where the workload prefers others
	cost int64
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.away, other.away), cmp.Compare(r.cost, other.cost))
}

func (s *State) rank(w *Waiting, cluster string) rank {
	r := rank{away: 1, cost: s.cost(w, cluster)}
	if s.prefers(w, cluster) {
		r.away = 0
	}
	return r
}

// cost returns what the gang costs in an hour in a cluster.
func (s *State) cost(w *Waiting, cluster string) int64 {
	c := s.tree.Cluster(cluster)
	if c == nil || len(c.Cost) == 0 {
		return 0
	}
	return c.Cost.Of(w.Workload.PodSets)
}

// choice is the best cluster so far for a gang that fits.
type choice struct {
	cluster       string
	places        []workload.Placement
	rank          rank
	fragmentation int64
	compared      int
}

// ends reports whether no later cluster is better, or enough have been compared.
func (c *choice) ends(next rank) bool {
	return c.compared > 0 && (next.compare(c.rank) > 0 || c.compared == mostCompared)
}

// consider takes a cluster with room, if it is better than the best so far.
func (c *choice) consider(cluster string, fleet *placement.Fleet, w *workload.Workload, places []workload.Placement, of rank, alone bool) {
	var fragmentation int64
	if !alone {
		fragmentation = fleet.Fragmentation(w, places)
	}
	if c.compared++; c.compared == 1 || fragmentation < c.fragmentation {
		c.cluster, c.places, c.rank, c.fragmentation = cluster, places, of, fragmentation
	}
}
