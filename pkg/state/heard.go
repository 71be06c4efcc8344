package state

import (
	"cmp"
	"slices"
	"time"
)

// Names of the parts that report on a cluster.
const (
	Watcher    = "capacity-watcher"
	Dispatcher = "dispatcher"
)

// Part is the watcher or the dispatcher of a cluster.
type Part struct{ Cluster, Name string }

// heard has when each part was last heard in this term, by the clock of the term.
type heard map[Part]time.Time

// before returns when a part was last heard, if that was before the given time, which is
// when it was asked first; else that time.
func (h heard) before(part Part, asked time.Time) time.Time {
	if last, ok := h[part]; ok && last.Before(asked) {
		return last
	}
	return asked
}

// hear notes that a part has reported. What is read again at the begin of a term was said
// before it, and counts for nothing.
func (s *State) hear(cluster, name string, now time.Time) {
	if !s.catchingUp {
		s.inquiries.heard[Part{cluster, name}] = now
	}
}

// SetSilentAfter sets after which silence of its watcher a cluster gets no new gangs; zero
// for never.
func (s *State) SetSilentAfter(most time.Duration) { s.silentAfter = most }

// SilentAfter returns what SetSilentAfter has set.
func (s *State) SilentAfter() time.Duration { return s.silentAfter }

// noteSilentClusters has admission leave out the clusters whose watchers are silent: what is
// known of their nodes is old. A term begins with all of them heard.
func (s *State) noteSilentClusters(now time.Time) {
	if s.silentAfter <= 0 || s.catchingUp {
		return
	}
	var silent map[string]time.Time
	for _, cluster := range s.admission.Clusters() {
		last := s.begun
		if heard := s.inquiries.heard[Part{cluster, Watcher}]; heard.After(last) {
			last = heard
		}
		if since := s.admission.Silent(cluster); !since.IsZero() && !last.After(since) {
			last = since // of a begin that is no report
		}
		if now.Sub(last) < s.silentAfter {
			continue
		}
		if silent == nil {
			silent = map[string]time.Time{}
		}
		silent[cluster] = last
	}
	s.admission.SetSilent(silent)
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
			wanted[Part{key.Cluster, Watcher}] = s.begun
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
		for _, later := range []time.Time{s.begun, s.inquiries.heard[part]} {
			if later.After(since) {
				since = later
			}
		}
		all = append(all, Silence{part, max(0, now.Sub(since))})
	}
	slices.SortFunc(all, func(a, b Silence) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	})
	return all
}
