package sim

import (
	"cmp"
	"maps"
	"slices"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/state"
)

// What was learned of the cost of evictions outlives the leader: the choice of victims counts
// it.

// keepLearned stores what was learned, which comes with a commit.
func (l *ledger) keepLearned(all []admission.Learned) {
	for _, learned := range all {
		l.learned[learned.LearnedKey] = learned
	}
}

// forgetLearned removes what was learned in queues that are configured no more.
func (l *ledger) forgetLearned(tree *quota.Tree) {
	maps.DeleteFunc(l.learned, func(key admission.LearnedKey, _ admission.Learned) bool { return tree.Queue(key.Queue) == nil })
}

// allLearned is what a term reads.
func (l *ledger) allLearned() []admission.Learned {
	all := []admission.Learned{} // not nil: nothing is what is stored
	for _, key := range slices.SortedFunc(maps.Keys(l.learned), func(a, b admission.LearnedKey) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Size, b.Size))
	}) {
		all = append(all, l.learned[key])
	}
	return all
}

// checkLearned checks that a term begins with what was learned and is stored.
func (c *checker) checkLearned(began *state.State) {
	if known, stored := asJSON(append([]admission.Learned{}, began.Settings().Learned...)), asJSON(c.w.disk.allLearned()); known != stored {
		c.w.breach("G3", "what was learned is stored as %s, and a term begins with %s", stored, known)
	}
}
