package quota

import (
	"cmp"
	"maps"
	"slices"
)

// PastUsage is what a queue used in the past, as it is stored.
type PastUsage struct {
	// Queue is the name of a ClusterQueue, or the LocalName of a LocalQueue.
	Queue string `json:"queue"`
	History
}

// TakePastUsage returns the past usage of the queues whose usage has changed since the last
// call, in the order of their names. It is enough to store these: Advance carries a stored
// value on while the usage stays the same. Without a half-life it returns nothing.
func (t *Tree) TakePastUsage() (changed []PastUsage) {
	for _, name := range slices.Sorted(maps.Keys(t.usageChanged)) {
		past, half := t.pastOf(name)
		if used, pending := t.usageBefore[name]; pending && !t.advancedTo.IsZero() {
			past.changes(t.advancedTo, used, half)
		}
		if past.history.At.IsZero() {
			continue // the next Advance begins it
		}
		delete(t.usageChanged, name)
		changed = append(changed, PastUsage{name, t.stored(name, past.history)})
	}
	return changed
}

// PastUsage returns the past usage of all queues that have some, in the order of their
// names.
func (t *Tree) PastUsage() (all []PastUsage) {
	add := func(name string, h History) {
		if !h.At.IsZero() {
			all = append(all, PastUsage{name, t.stored(name, h)})
		}
	}
	for _, q := range t.sorted {
		add(q.Name, q.node.history)
	}
	for name, u := range t.localUsages {
		add(name, u.history)
	}
	slices.SortFunc(all, func(a, b PastUsage) int { return cmp.Compare(a.Queue, b.Queue) })
	return all
}

// stored is a history as it is stored, which shares nothing.
func (t *Tree) stored(name string, h History) History {
	h = h.stored()
	if u := t.localUsages[name]; u != nil && len(u.used) > 0 {
		h.Using = u.used.Clone()
	}
	return h
}

// LoadPastUsage is SetPastUsage for a tree without gangs, in which LocalQueues go on using
// what they used when it was stored.
func (t *Tree) LoadPastUsage(past PastUsage) {
	t.SetPastUsage(past)
	if u := t.localUsages[past.Queue]; u != nil {
		u.used = past.Using.Clone()
	}
}

// SetPastUsage restores past usage as it was stored. That of a queue which is configured no
// more, or does not count, is ignored.
func (t *Tree) SetPastUsage(past PastUsage) {
	if q := t.queues[past.Queue]; q != nil {
		q.SetHistory(past.History)
	} else if t.localHalfLife() > 0 && t.localOf(past.Queue) != nil {
		t.localUsage(past.Queue).restore(past.History)
	}
}

// PastUsers are the names of the queues whose past usage is kept.
func (t *Tree) PastUsers() []string {
	names := make([]string, 0, len(t.sorted))
	for _, q := range t.sorted {
		names = append(names, q.Name)
	}
	if t.localHalfLife() > 0 {
		for _, l := range t.config.LocalQueues {
			names = append(names, LocalName(l.Namespace, l.Name))
		}
	}
	return names
}
