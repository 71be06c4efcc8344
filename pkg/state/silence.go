package state

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// restarted reports whether a deadline that has passed, to heal or to be ready, begins again: the
// cluster was silent meanwhile, and what has to be done there, or reported of it, takes time.
// It counts from the end of the silence, also for the terms to come.
func (l *lifecycle) restarted(d deadline, e *entry, rules *workload.Rules, now time.Time) bool {
	at := l.inquiries.endOfSilence(e)
	if !at.After(begins(d, e)) {
		return false
	}
	e.heardAgain = at
	l.changed.workloads[e.ID], l.changed.heardAgain[e.ID] = e, true
	return !l.passed(d, e, rules, now)
}

// endOfSilence returns the end of the last silence of the workload's cluster, as far as the silence
// concerns the workload; zero for none. A dispatcher that waits for the API server to create
// the object has nothing to report, except answers.
func (q *inquiries) endOfSilence(e *entry) (at time.Time) {
	for name, since := range map[string]time.Time{Watcher: e.Times.Admitted, Dispatcher: e.Times.Dispatched} {
		p := q.pauses[Part{e.Cluster, name}]
		if !since.IsZero() && elapsed(p.to, notBefore(p.from, since), q.timeout) && p.to.After(at) {
			at = p.to
		}
	}
	if i := q.asked[attemptOf(e)]; i != nil && i.late.After(at) {
		at = i.late
	}
	return at
}

// SetSilentAfter sets after which silence of its watcher a cluster gets no new gangs; zero
// for never.
func (s *State) SetSilentAfter(most time.Duration) { s.silentAfter = most }

// SilentAfter returns what SetSilentAfter has set.
func (s *State) SilentAfter() time.Duration { return s.silentAfter }

// noteSilentClusters has admission leave out the clusters whose watchers are silent: what is
// known of their nodes is old.
func (s *State) noteSilentClusters(now time.Time) {
	if s.silentAfter <= 0 || s.catchingUp {
		return
	}
	var silent map[string]time.Time
	var uncleared map[string]bool
	for _, cluster := range s.clustersToHear() {
		last, reports := s.heardSince(Part{cluster, Watcher}), s.watcherReports(cluster, now)
		if since, is := s.unclearedSince(cluster); is {
			if reports {
				if uncleared == nil {
					uncleared = map[string]bool{}
				}
				uncleared[cluster] = true
			}
			last = since // until its dispatcher has removed what is there, and asks again
		} else if reports {
			continue
		}
		if silent == nil {
			silent = map[string]time.Time{}
		}
		silent[cluster] = last
	}
	s.admission.SetSilent(silent)
	s.admission.SetUncleared(uncleared)
}

// clustersToHear lists the clusters that have reported, and those in which workloads ask for nodes: of
// one without nodes a term may know no report, because the stream has lost it.
func (s *State) clustersToHear() []string {
	clusters := s.admission.Clusters()
	for _, e := range s.asking {
		if hasRequest(e) && !slices.Contains(clusters, e.Provisioning.Cluster) {
			clusters = append(clusters, e.Provisioning.Cluster)
		}
	}
	return clusters
}

// Silence is how long a part has been silent whose reports are wanted.
type Silence struct {
	Part
	For time.Duration
}

// Silences returns how long each part has been silent that something waits for, in order:
// the watcher of a cluster with nodes, and the dispatcher of one where workloads hold
// places. Both repeat what they know every few seconds. A dispatcher without workloads has
// nothing to say, so its silence begins with the first of them.
func (s *State) Silences(now time.Time) []Silence {
	if s.catchingUp {
		return nil
	}
	wanted := map[Part]time.Time{}
	for key, n := range s.nodes {
		if n.present {
			wanted[Part{key.Cluster, Watcher}] = time.Time{}
		}
	}
	for e := range s.live.All() {
		part := Part{e.Cluster, Dispatcher}
		if first, ok := wanted[part]; e.Holding && (!ok || e.Times.Admitted.Before(first)) {
			wanted[part] = e.Times.Admitted
		}
	}
	all := make([]Silence, 0, len(wanted))
	for part, since := range wanted {
		if last := s.heardSince(part); last.After(since) {
			since = last
		}
		all = append(all, Silence{part, max(0, now.Sub(since))})
	}
	slices.SortFunc(all, func(a, b Silence) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	})
	return all
}
