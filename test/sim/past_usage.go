package sim

import (
	"encoding/json"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/state"
)

// What queues used in the past outlives the leader: fair sharing counts it.

// keepPastUsage stores the past usage that comes with a commit.
func (l *ledger) keepPastUsage(all []quota.PastUsage) {
	for _, past := range all {
		l.past[past.Queue] = past
	}
}

// forgetPastUsage removes the past usage of queues that are configured no more, and what was
// learned in them.
func (l *ledger) forgetPastUsage(policy quota.Config) {
	tree, err := quota.New(state.PolicyOf(l.queues, policy))
	if err != nil {
		panic(fmt.Sprintf("a policy that is not valid was stored: %v", err))
	}
	l.forgetLearned(tree)
	counts := tree.PastUsers()
	for name := range l.past {
		if !slices.Contains(counts, name) {
			delete(l.past, name)
		}
	}
}

// pastUsage is what a term reads.
func (l *ledger) pastUsage() (all []quota.PastUsage) {
	if l.w.Bug == BugForgottenUsage {
		return nil
	}
	for _, name := range sortedKeys(l.past) {
		all = append(all, l.past[name])
	}
	return all
}

// checkPastUsage checks that a term begins with the past usage that is stored.
func (c *checker) checkPastUsage(began *state.State) {
	known := map[string]string{}
	for _, past := range began.Settings().PastUsage {
		known[past.Queue] = asJSON(past)
	}
	for _, name := range sortedKeys(c.w.disk.past) {
		if stored := asJSON(c.w.disk.past[name]); known[name] != stored {
			c.w.breach("G3", "the past usage of queue %s is stored as %s, and a term begins with %q", name, stored, known[name])
		}
		c.made[madePast]++
	}
}

// checkPastUsageStored checks that a commit which changes the usage of queues stores their
// past usage with it.
func (c *checker) checkPastUsageStored(before, after ledgerState, changes state.Changes) {
	rules := c.w.disk.rules
	if !rules.fair || rules.halfLife == 0 {
		return
	}
	stored := map[string]bool{}
	for _, past := range changes.PastUsage {
		stored[past.Queue] = true
	}
	for _, name := range ruledQueues {
		if _, known := c.w.disk.past[name]; known && before.used[name] != after.used[name] && !stored[name] {
			c.w.breach("G3", "the usage of queue %s changes from %d to %d, and its past usage is not stored", name, before.used[name], after.used[name])
		}
	}
}

func asJSON(value any) string {
	text, _ := json.Marshal(value) // plain data can always be encoded
	return string(text)
}
