package admission

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// What an eviction costs beside the lost work is learned from workloads alike: how long they
// take to start, and how long evicted ones wait until they are back. It is measured, but a tenant
// can make starts longer: when its pods are ready is for its probes to say. So starts are bounded
// when they are measured (state.learnStart) and when they count (regretOf).

const (
	// leastLearned is how many measurements a mean has that counts.
	leastLearned = 8
	// mostLearned bounds the weight of what was measured before: a new measurement weighs a
	// sixteenth at least.
	mostLearned = 16
	// mostReturn bounds one wait until a workload is back.
	mostReturn = 24 * time.Hour
)

// LearnedKey names workloads alike.
type LearnedKey struct {
	// Queue is the ClusterQueue, Kind that of the object.
	Queue string `json:"queue"`
	Kind  string `json:"kind"`
	// Size is the number of digits of the number of pods, in binary: up to twice as many pods
	// are alike.
	Size int `json:"size"`
	// Accelerators is the same of the number of accelerators; zero without any.
	Accelerators int `json:"accelerators,omitzero"`
}

// Compare orders keys.
func (k LearnedKey) Compare(other LearnedKey) int {
	return cmp.Or(cmp.Compare(k.Queue, other.Queue), cmp.Compare(k.Kind, other.Kind),
		cmp.Compare(k.Accelerators, other.Accelerators), cmp.Compare(k.Size, other.Size))
}

// Mean is the mean of measured times, in which later ones weigh more.
type Mean struct {
	Count int32         `json:"count"` // at most 16
	Mean  time.Duration `json:"mean"`
}

// With returns the mean with one more measurement.
func (m Mean) With(d time.Duration) Mean {
	n := min(m.Count+1, mostLearned)
	return Mean{n, m.Mean + (d-m.Mean)/time.Duration(n)}
}

// Learned is what was measured of workloads alike.
type Learned struct {
	LearnedKey
	// Starts are the times from an admission until all pods were ready, Returns those from
	// when a preempted one had given up its places until its next admission.
	Starts  Mean `json:"starts,omitzero"`
	Returns Mean `json:"returns,omitzero"`
}

// learned is all that was learned, and what of it has changed since it was taken.
type learned struct {
	all     map[LearnedKey]Learned
	changed map[LearnedKey]bool
}

func newLearned() learned {
	return learned{map[LearnedKey]Learned{}, map[LearnedKey]bool{}}
}

func (l learned) clone() learned { return learned{maps.Clone(l.all), maps.Clone(l.changed)} }

// of returns the part about queues that are configured.
func (l learned) of(configured func(queue string) bool) learned {
	part := l.clone()
	maps.DeleteFunc(part.all, func(key LearnedKey, _ Learned) bool { return !configured(key.Queue) })
	maps.DeleteFunc(part.changed, func(key LearnedKey, _ bool) bool { return !configured(key.Queue) })
	return part
}

// learnedKey returns the key of a gang; of a part that of the whole.
func (g *Started) learnedKey() LearnedKey {
	if g.whole != nil {
		g = g.whole
	}
	key := LearnedKey{Queue: g.Queue, Kind: g.Workload.Kind, Size: bits.Len(uint(g.Workload.Pods()))}
	if units, accelerators := g.units(); accelerators {
		key.Accelerators = bits.Len64(uint64(units))
	}
	return key
}

func (s *State) learn(id workload.ID, change func(*Learned)) {
	g := s.started[id]
	if g == nil {
		return
	}
	key := g.learnedKey()
	known := s.learned.all[key]
	known.LearnedKey = key
	change(&known)
	s.learned.all[key], s.learned.changed[key] = known, true
}

// LearnStart notes how long a started gang took from its admission until all its pods were
// ready.
func (s *State) LearnStart(id workload.ID, took time.Duration) {
	s.learn(id, func(l *Learned) { l.Starts = l.Starts.With(max(0, took)) })
}

// LearnReturn notes how long a gang that has started again waited after its preemption.
func (s *State) LearnReturn(id workload.ID, waited time.Duration) {
	s.learn(id, func(l *Learned) { l.Returns = l.Returns.With(min(max(0, waited), mostReturn)) })
}

// SetLearned replaces all that was learned by what is stored.
func (s *State) SetLearned(stored []Learned) {
	s.learned = newLearned()
	for _, l := range stored {
		s.learned.all[l.LearnedKey] = l
	}
}

// Learned returns all that was learned, in order.
func (s *State) Learned() []Learned {
	return slices.SortedFunc(maps.Values(s.learned.all), func(a, b Learned) int { return a.Compare(b.LearnedKey) })
}

// TakeLearned returns what is to be stored: that which has changed since the last call.
func (s *State) TakeLearned() (changed []Learned) {
	for key := range s.learned.changed {
		changed = append(changed, s.learned.all[key])
	}
	clear(s.learned.changed)
	slices.SortFunc(changed, func(a, b Learned) int { return a.Compare(b.LearnedKey) })
	return changed
}

// restartOf returns how long the next start of an evicted gang takes, and how long the gang
// waits for it: the means of workloads alike, where enough were seen; else its last start, and
// nothing.
func (s *State) restartOf(g *Started) (start, wait time.Duration) {
	known := s.learned.all[g.learnedKey()]
	start = max(0, g.Progress.Startup)
	if known.Starts.Count >= leastLearned {
		start = known.Starts.Mean
	}
	if known.Returns.Count >= leastLearned {
		wait = known.Returns.Mean
	}
	return start, wait
}

// units returns how many accelerators the gang has, as the device that it has most of; of
// a gang without accelerators, its pods.
func (g *Started) units() (count int64, accelerators bool) {
	for i := range g.Workload.PodSets {
		for name := range g.Workload.PodSets[i].Template.Requests {
			if resource.Whole(name) && name != resource.Pods {
				count = max(count, g.Workload.Requested(name))
			}
		}
	}
	if count > 0 {
		return count, true
	}
	return int64(g.Workload.Pods()), false
}
