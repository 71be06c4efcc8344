package sim

import "time"

// lostAttempt is an attempt whose objects were created in time that the ledger has lost.
type lostAttempt struct {
	losses int // of NATS, when the lost time began
	// known is when a term began that could learn of it from NATS; zero for none.
	known time.Time
}

// forgetAttempts notes which attempts a ledger that is as it was since then has lost.
func (c *checker) forgetAttempts(since time.Time, losses int) {
	for key, at := range c.createdAt {
		if lost, again := c.lost[key]; again && lost.known.After(since) {
			lost.known = time.Time{} // what that term has learnt is lost, too
		} else if !again && at.After(since) {
			c.lost[key] = &lostAttempt{losses: losses}
		}
	}
}

// relearns notes that a term has begun, which has looked at what NATS has.
func (c *checker) relearns() {
	for _, lost := range c.lost {
		if lost.known.IsZero() && lost.losses == c.w.net.losses {
			lost.known = c.w.now
		}
	}
}

// forgotten reports whether there is no trace of an attempt when an object of it is created:
// the ledger was restored to a state older than its creation, NATS lost messages before a
// term could read them, and nothing of it is in the cluster. Then the world is the same as
// if it had never been, and it is the first attempt once more.
func (c *checker) forgotten(o *object) bool {
	lost := c.lost[attemptKey{o.workload, o.attempt}]
	if lost == nil || !lost.known.IsZero() || lost.losses == c.w.net.losses {
		return false
	}
	if len(c.w.cluster.podsOf(func(p *pod) bool { return p.workload == o.workload && p.owner != o.uid })) > 0 {
		return false
	}
	c.made[madeAgain]++
	return true
}
