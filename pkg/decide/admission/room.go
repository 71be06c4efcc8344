package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/quota"
)

// choiceOfRoom chooses among assignments of flavors that need evictions, in their order. As in
// Kueue, one that lacks quota which only other queues give back comes before one for which a gang
// of the workload's own queue is evicted.
type choiceOfRoom struct {
	best *sized // nil for none so far
	own  bool   // a gang of the workload's own queue is evicted for the quota of best
}

// consider takes notice of what evictions make of the next assignment, nil for nothing. It reports
// whether the choice is made.
func (c *choiceOfRoom) consider(found *sized) bool {
	switch own := found != nil && found.takesOwnQuota(); {
	case found == nil:
	case !own:
		c.best, c.own = found, false
		return true
	case c.best == nil:
		c.best, c.own = found, true
	}
	return false
}

// chosen returns the choice, nil for none. A search that was cut may still find that another
// assignment needs no gang of the own queue, and it is repeated within seconds: until then none
// is evicted.
func (c *choiceOfRoom) chosen(w *Waiting) *sized {
	if c.own && w.class.cut {
		return nil
	}
	return c.best
}

// takesOwnQuota reports whether a gang of the workload's own queue is evicted for quota.
func (s *sized) takesOwnQuota() bool {
	return s.assess.Mode != quota.Within && slices.ContainsFunc(s.victims, func(c candidate) bool { return c.policy == withinQueue })
}

// roomBy returns how the workload can start under an assignment after evictions, nil when it
// cannot.
func (d *decision) roomBy(w *Waiting, a quota.Assess, flavored *flavoredSignature) *sized {
	n, list := d.assessedVictims(w, a, flavored)
	if n == nil {
		return nil
	}
	return &sized{assess: a, flavored: flavored, nomination: n, victims: list}
}
