package sim

import (
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
	if l.w.Bug == BugUnlearned {
		return
	}
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
	for _, key := range slices.SortedFunc(maps.Keys(l.learned), admission.LearnedKey.Compare) {
		all = append(all, l.learned[key])
	}
	return all
}

// checkLearned checks that a term takes in what was learned and is stored.
func (c *checker) checkLearned(began *state.State) {
	if known, stored := asJSON(append([]admission.Learned{}, began.Settings().Learned...)), asJSON(c.w.disk.allLearned()); known != stored {
		c.w.breach("G3", "what was learned is stored as %s, and a term begins with %s", stored, known)
	}
}

// checkLearnedStored checks that after a commit all that is stored which the decisions up to it
// have learned, by a state that has decided the same.
func (c *checker) checkLearnedStored(learned string, changes state.Changes) {
	if learned == "" {
		return
	}
	if stored := asJSON(c.w.disk.allLearned()); learned != stored {
		c.w.breach("G3", "up to version %d was learned %s, and %s is stored", changes.Version, learned, stored)
	}
	if len(changes.Learned) > 0 {
		c.made[madeLearned]++
	}
}

// learned is what the decisions of a term have learned; empty when that is not known or cannot be
// stored.
func (w *witness) learned() string {
	if w.state == nil || w.apart || w.term.step.NoLearned {
		return ""
	}
	return asJSON(append([]admission.Learned{}, w.state.Settings().Learned...))
}
