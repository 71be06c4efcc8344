package quota

import (
	"maps"
	"math"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// History is what a queue used in the past, decayed by the half-life: the
// average use with weights that halve with each half-life.
type History struct {
	At   time.Time                 `json:"at"`
	Used map[resource.Name]float64 `json:"used"`
}

// leastPast is the least past use that counts, as an amount: what decays goes to nothing.
const leastPast = 1e-3

// after returns the history at a later time, if the queue has used the same all the while.
// A leader whose clock is behind that of the one before goes on from its own time: waiting
// for the former time to come would count nothing until then.
func (h History) after(now time.Time, used resource.List, half time.Duration) History {
	passed := now.Sub(h.At)
	if passed <= 0 {
		return History{At: now, Used: h.Used}
	}
	kept := decay(passed, half)
	next := History{At: now, Used: make(map[resource.Name]float64, len(h.Used))}
	add := func(name resource.Name) {
		// The conversions keep a compiler from fusing the operations, which would round
		// otherwise on some machines.
		amount := float64(h.Used[name]*kept) + float64(float64(used[name])*(1-kept))
		if amount >= leastPast || used[name] > 0 {
			next.Used[name] = amount
		}
	}
	for name := range h.Used {
		add(name)
	}
	for name := range used {
		add(name)
	}
	return next
}

// Advance counts the past usage of all queues until now. What changed their usage since the
// last Settle happened now: before, a queue used what it used then. It does nothing unless
// the configuration has a half-life.
//
// The past usage of a queue is kept as of the last change of its usage, and what it is now
// is computed from that in one step. So it does not depend on how often Advance is called:
// a replay does not see the times at which nothing happened.
func (t *Tree) Advance(now time.Time) {
	half := t.halfLife()
	if half == 0 {
		return
	}
	t.advancedTo = now
	for _, q := range t.sorted {
		if used, changed := t.usageBefore[q.Name]; changed {
			q.usageChanges(now, used, half)
			continue
		}
		if h := &q.node.history; h.At.IsZero() || h.At.After(now) {
			h.At = now // begins, or goes on with a clock that is behind
		}
		q.node.present = q.node.history.after(now, q.Used(), half)
	}
	clear(t.usageBefore)
}

// AdvanceChanged is Advance of the queues whose usage has changed since the last Settle,
// and Settle. It is for a time at which nothing is decided.
func (t *Tree) AdvanceChanged(now time.Time) {
	t.advancedTo = now
	t.Settle()
}

// Settle ends the changes of usage that belong to the time of the last Advance, such as
// admissions: what changes from now on changes later.
func (t *Tree) Settle() {
	half := t.halfLife()
	for name, used := range t.usageBefore {
		t.queues[name].usageChanges(t.advancedTo, used, half)
	}
	clear(t.usageBefore)
}

// usageChanges counts past usage until a time at which the usage changes.
func (q *Queue) usageChanges(now time.Time, used resource.List, half time.Duration) {
	n := q.node
	if n.history.At.IsZero() {
		n.history = History{At: now, Used: map[resource.Name]float64{}}
	}
	n.history = n.history.after(now, used, half)
	n.present = n.history
}

// ForgetUsageChanges drops what was noted of changes of usage. It is for a tree that is
// being filled.
func (t *Tree) ForgetUsageChanges() {
	clear(t.usageBefore)
	clear(t.usageChanged)
}

// InheritUsageChanges takes over what another tree has noted of the queues of this one.
func (t *Tree) InheritUsageChanges(of *Tree) {
	t.advancedTo = of.advancedTo
	if t.halfLife() == 0 {
		return
	}
	for name := range of.usageChanged {
		if t.queues[name] != nil {
			t.usageChanged[name] = true
		}
	}
	for name, used := range of.usageBefore {
		if t.queues[name] != nil {
			t.usageBefore[name] = used
		}
	}
}

func (t *Tree) halfLife() time.Duration {
	if f := t.config.FairSharing; f != nil && f.Enable {
		return time.Duration(f.UsageHalfLifeSeconds) * time.Second
	}
	return 0
}

// PastUsage is what a ClusterQueue used in the past, as it is stored.
type PastUsage struct {
	Queue string `json:"queue"`
	History
}

// TakePastUsage returns the past usage of the queues whose usage has changed since the last
// call, in the order of their names. It is enough to store these: Advance carries a stored
// value on while the usage stays the same. Without a half-life it returns nothing.
func (t *Tree) TakePastUsage() (changed []PastUsage) {
	for _, name := range slices.Sorted(maps.Keys(t.usageChanged)) {
		q := t.queues[name]
		if used, pending := t.usageBefore[name]; pending && !t.advancedTo.IsZero() {
			q.usageChanges(t.advancedTo, used, t.halfLife())
		}
		if q.node.history.At.IsZero() {
			continue // Advance begins it
		}
		delete(t.usageChanged, name)
		changed = append(changed, PastUsage{name, q.History()})
	}
	return changed
}

// PastUsage returns the past usage of all queues that have some, in the order of their
// names.
func (t *Tree) PastUsage() (all []PastUsage) {
	for _, q := range t.sorted {
		if !q.node.history.At.IsZero() {
			all = append(all, PastUsage{q.Name, q.History()})
		}
	}
	return all
}

// noteUsageChange notes that the usage of a queue is about to change for good.
func (q *Queue) noteUsageChange() {
	t := q.tree
	if t.savepoints > 0 || t.halfLife() == 0 {
		return
	}
	t.usageChanged[q.Name] = true
	if _, noted := t.usageBefore[q.Name]; !noted {
		t.usageBefore[q.Name] = q.Used()
	}
}

// History returns the past usage of the queue as of the last change of its usage, to be
// stored and restored by SetHistory.
func (q *Queue) History() History {
	used := maps.Clone(q.node.history.Used)
	if used == nil {
		used = map[resource.Name]float64{} // of a queue that has used nothing, as that of one whose use is forgotten
	}
	return History{At: q.node.history.At, Used: used}
}

// Past returns the past usage of the queue as of the last Advance.
func (q *Queue) Past() History {
	return History{At: q.node.present.At, Used: maps.Clone(q.node.present.Used)}
}

// SetHistory restores the past usage of the queue.
func (q *Queue) SetHistory(h History) {
	q.node.history = History{At: h.At, Used: maps.Clone(h.Used)}
	q.node.present = q.node.history
}

// decay is 2^(-passed/half): whole half-lives shift, the rest is the product of the powers
// 2^(-1/2), 2^(-1/4), ... that it consists of.
func decay(passed, half time.Duration) float64 {
	factor := math.Ldexp(1, -int(min(passed/half, 1000)))
	rest := uint64(passed % half)
	for _, root := range rootsOfHalf {
		if rest *= 2; rest >= uint64(half) {
			rest -= uint64(half)
			factor = float64(factor * root)
		}
	}
	return factor
}

// rootsOfHalf are 2^(-1/2), 2^(-1/4), ..., as far as they differ from one. IEEE 754 rounds
// square roots correctly, so they are the same on every machine.
var rootsOfHalf = func() (roots [52]float64) {
	root := 0.5
	for i := range roots {
		root = math.Sqrt(root)
		roots[i] = root
	}
	return roots
}()
