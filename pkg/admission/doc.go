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
// # Backfill
//
// In a Backfill queue the head that lacks places gets a reservation in time (a
// hold): the places that it will have when certain gangs have ended, found by
// taking the started gangs of a cluster out, in the order of their expected ends,
// until the head fits. Whoever comes after the head, in whatever queue, starts
// only if it cannot delay it: it has ended, by its declared run time, before the
// head starts; or it has places beside those held; or the head, placed anew,
// still has places at that time (EASY backfill, on nodes instead of sums). The
// expected end of a gang is its admission plus its declared run time; one that is
// over time has a grace of a tenth, at least a minute, and then no known end.
// When an end that matters is not known, others pass freely until the head has
// waited for the queue's patience; then its nodes are drained: what it needs of
// them is given to nobody after it, whatever their run time.
//
// Nobody starves. Let P be the patience of the queue and R the longest time for
// which a gang really holds its places. A gang that would fit on an empty
// cluster, and that has become the first of its queue (under ShortestFirst: has
// waited for P and no one who has is before it), starts at most P + 2R later,
// however many gangs come after it: either its start is known, and no later than
// the longest declared run from now, or a gang on which it waits is over time, and
// then, from P after its submission, only gangs that were started before the
// draining keep it, each for R at most. With m gangs before it in line that is P +
// 2(m+1)R. The bound is on nodes, among gangs of the same priority: a stream of
// higher priority starves whoever is below it, and gangs that never end, such as
// RayClusters that nobody cancels, are waited for without end. A head that waits
// for quota is not passed in its own queue once its patience is over.
//
// Making a hold for a head with k gangs to wait for costs O(log k) searches for
// places and k what-if changes; a candidate that fits now costs one more search
// for each cluster with a hold. Nothing of it is done for gangs that do not fit.
//
// # Work
//
// The waiting of a queue that are alike in shape and priority form a bucket and
// share one verdict. A decision looks at the heads of open buckets, in order; a
// bucket whose head does not start is blocked, and opened again when something
// changed that its verdict depends on: the fleet wakes its shape, quota came
// back in its tree, shares have another measure, a time has come. With b buckets
// that are open, a decision costs O(b log b) beside the searches for places; the
// waiting in blocked buckets cost nothing. What a decision itself changes for those
// that it has refused (evictions, shares, what is held for heads) has them looked
// at once more at its end, until nobody moves. Those are not looked at again for
// whom it was not enough to evict everybody whom they may evict: further evictions
// of the same gangs bring them nothing. A decision that looked at everything would
// do no more, but that a claim on what victims free is settled when they go, and
// that there may be places around those held for a head or not, by where they are
// looked for; and what would follow if somebody had those.
//
// # Preemption
//
// A gang has others evicted only if a what-if on nodes and quota shows that it
// starts when they are gone. The places are then its own (a claim): they are
// taken at once, so that nobody else gets what the victims free. Gangs that are
// being torn down anyhow count as gone, so a claim that a new leader does not
// know is found anew without new victims.
//
// Whom it has evicted is the cheapest of all sets of gangs that would do: the
// fewest, then, under fair sharing, those of the queues with the largest shares,
// then those of the lowest priorities, then those that lose the least work. First
// a set is found by evicting in that order, but of one priority the last admitted
// first, and sparing whoever can be: O(log n) what-ifs for n candidates, and one
// for each victim. Quota is asked in that order, too; what it permits may depend on
// the order, which time alone leaves as it is. Then sets of one gang, of two and so
// on are searched depth first, bounded by what each gang can bring of what is
// lacking (quota, room for pods) and by the price; that is exponential in the
// number of victims where the bounds do not tell, so there is a budget of steps,
// after which the best that was found is taken. Where nothing was found at first,
// one what-if says whether evicting all candidates would be enough.
//
// Preemption ends. Of two gangs one is evicted for the other at most once, and
// the other never for it, until one of them ends, is cancelled, or loses a node;
// with n gangs those are at most n(n-1)/2 evictions. Beyond that there are only
// exchanges: one gang for one that is charged the same, in its own queue by the
// order of the queue, or in another one if the shares in the tree become more
// even (quota.Queue.Evens). Let nothing happen from outside, and all evictions
// but exchanges be over. An exchange leaves what is used as it is, and makes the
// shares more even, or leaves them too and makes the order in a queue better; an
// admission makes more be used. So what is used, the shares and the orders, in
// that order of importance, get better with each step. No state comes twice, and
// there are finitely many.
//
// So fair sharing ends with no gang waiting for what one that is charged the same
// has in a branch with the larger share, even if the waiting one started: it would
// be exchanged. Between gangs that are charged differently there is no such bound.
// What a large one leaves over when a small one takes its place would be taken by
// others whose shares grow by it, which could justify the way back.
package admission
