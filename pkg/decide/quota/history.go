package quota

import (
	"maps"
	"math"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// History is what a queue used in the past, decayed by the half-life: the
// average use with weights that halve with each half-life.
type History struct {
	At   time.Time                 `json:"at"`
	Used map[resource.Name]float64 `json:"used"`
	// Using is, of a LocalQueue, what it uses since then, for readers of what is stored.
	Using resource.List `json:"using,omitempty"`
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

// pastRecord is the past usage of a ClusterQueue or LocalQueue.
type pastRecord struct {
	history History // as of the last change of its usage
	present History // as of the last Advance
}

// changes counts past use until a time at which the usage changes.
func (p *pastRecord) changes(now time.Time, used resource.List, half time.Duration) {
	if p.history.At.IsZero() {
		p.history = History{At: now, Used: map[resource.Name]float64{}}
	}
	p.history = p.history.after(now, used, half)
	p.present = p.history
}

// advance brings the present to a time before which the usage has not changed. Past use that
// does not count yet begins with the next change of the usage, not here: a replay does not see
// each of these times. With a clock that is behind it goes on.
func (p *pastRecord) advance(now time.Time, used resource.List, half time.Duration) {
	if p.history.At.IsZero() {
		p.present = History{At: now}
		return
	}
	if p.history.At.After(now) {
		p.history.At = now
	}
	p.present = p.history.after(now, used, half)
}

// pastOf returns the past use that is kept under a name, and its half-life; nil for none.
func (t *Tree) pastOf(name string) (*pastRecord, time.Duration) {
	if q := t.queues[name]; q != nil {
		return &q.node.pastRecord, t.halfLife()
	}
	if u := t.localUsages[name]; u != nil {
		return &u.pastRecord, t.localHalfLife()
	}
	return nil, 0
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
	if half == 0 && t.localHalfLife() == 0 {
		return
	}
	changed := t.usageBefore
	t.advancedTo, t.usageBefore = now, map[string]resource.List{}
	t.settle(changed)
	for name, u := range t.localUsages {
		if _, done := changed[name]; !done {
			u.advance(now, u.used, t.localHalfLife())
		}
	}
	for _, q := range t.sorted {
		if _, done := changed[q.Name]; done || half == 0 {
			continue
		}
		q.node.advance(now, q.Used(), half)
	}
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
	t.settle(t.usageBefore)
	clear(t.usageBefore)
}

// settle counts past usage until now of what has changed, with what was used before.
func (t *Tree) settle(before map[string]resource.List) {
	for name, used := range before {
		past, half := t.pastOf(name)
		past.changes(t.advancedTo, used, half)
	}
}

// ForgetUsageChanges drops what was noted of changes of usage. It is for a tree that is
// being filled.
func (t *Tree) ForgetUsageChanges() {
	clear(t.usageBefore)
	clear(t.usageChanged)
}

// InheritUsageChanges copies what another tree has noted of the queues of this one.
func (t *Tree) InheritUsageChanges(of *Tree) {
	t.advancedTo = of.advancedTo
	counts := func(name string) bool {
		_, half := t.pastOf(name)
		return half > 0
	}
	for name := range of.usageChanged {
		if counts(name) {
			t.usageChanged[name] = true
		}
	}
	for name, used := range of.usageBefore {
		if counts(name) {
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

// noteUsageChange notes that the usage of a queue is about to change for good.
func (q *Queue) noteUsageChange() {
	if q.tree.halfLife() > 0 {
		q.tree.noteUsageChange(q.Name, q.Used)
	}
}

func (t *Tree) noteUsageChange(name string, used func() resource.List) {
	if t.savepoints > 0 {
		return
	}
	t.usageChanged[name] = true
	if _, noted := t.usageBefore[name]; !noted {
		t.usageBefore[name] = used()
	}
}

// stored returns the history to be stored, which shares nothing.
func (h History) stored() History {
	used := maps.Clone(h.Used)
	if used == nil {
		used = map[resource.Name]float64{} // of a queue that has used nothing, as that of one whose use is forgotten
	}
	return History{At: h.At, Used: used}
}

// History returns the past usage of the queue as of the last change of its usage, to be
// stored and restored by SetHistory.
func (q *Queue) History() History { return q.node.history.stored() }

// Past returns the past usage of the queue as of the last Advance.
func (q *Queue) Past() History {
	return History{At: q.node.present.At, Used: maps.Clone(q.node.present.Used)}
}

// SetHistory restores the past usage of the queue.
func (q *Queue) SetHistory(h History) { q.node.restore(h) }

func (p *pastRecord) restore(h History) {
	p.history = History{At: h.At, Used: maps.Clone(h.Used)}
	p.present = p.history
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
