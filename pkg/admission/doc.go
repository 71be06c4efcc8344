// Package admission decides which waiting gangs start, on which nodes, who is
// evicted for them, and why the others wait.
//
// It is pure: a State is plain memory that the caller keeps true, and Decide
// moves it on by a Plan. No context, clock, logger, randomness or I/O; the same
// state and time give the same plan on any machine. It does not know Kubernetes,
// Postgres or NATS. Where a gang fits is package placement's to say, and what it
// may use package quota's.
//
// # Order
//
// In a queue by priority, then by submission; an evicted gang keeps its place.
// Across queues the same; but within a tree of cohorts who need not borrow comes
// before who must, and if fair sharing is on the branch whose share would be the
// smaller (quota.Tree, Fairest). A gang is tried on one cluster after the other and lives wholly in
// one. In a StrictFIFO queue nobody passes a waiting gang; in a BestEffortFIFO
// queue whoever fits may.
//
// # Work
//
// The waiting of a queue that are alike in shape and priority form a bucket and
// share one verdict. A decision looks at the heads of open buckets, in order; a
// bucket whose head does not start is blocked, and opened again when something
// changed that its verdict depends on: the fleet wakes its shape, quota came
// back in its tree, a time has come. With b buckets that are open, a decision
// costs O(b log b) beside the searches for places; the waiting in blocked buckets
// cost nothing.
//
// # Preemption
//
// A gang has others evicted only if a what-if on nodes and quota shows that it
// starts when they are gone. The places are then its own (a claim): they are
// taken at once, so that nobody else gets what the victims free. Gangs that are
// being torn down anyhow count as gone, so a claim that a new leader does not
// know is found anew without new victims.
//
// Preemption ends. Within a queue a victim has the lower priority, or the same
// and a later submission: an order, so it has no cycle. Who takes back what its
// cohort has lent is within its own quota afterwards, and what is within its own
// quota is not taken. Under fair sharing the larger of the two shares shrinks
// with each eviction. Policies that are mixed across queues could still chase
// each other, so there is a bound that needs no such argument: until something
// happens from outside (a gang ends, is cancelled, or loses a node), the same
// gang is not evicted twice for the same other gang, and never has the one
// evicted that it was evicted for. With n gangs that is at most n(n-1)/2
// evictions.
package admission
