// Package admission decides which waiting gangs start, on which nodes, which running
// gangs are evicted for them, and why the others wait.
//
// It is pure: a State is plain memory that the caller keeps up to date, and Decide
// applies its Plan to it. There is no context, clock, logger, randomness or I/O; the
// same state and time give the same plan on any machine. The package does not know
// Kubernetes, Postgres or NATS. Package placement decides where a gang fits, package
// quota what a queue may use.
//
// # Stages
//
// Decide goes through these stages, each in the file named:
//
//	orderByUse                 use_order.go       queues that order by what LocalQueues used
//	recheckNamespaces          recheck.go         namespaces that are selected now, or no more
//	recheckRanges              recheck.go         pods that LimitRanges allow now, or no more
//	recheckDefaults            recheck.go         what namespaces have pods ask for by default
//	endBackoffs, drain         decide.go          back-offs that are over; queues to empty
//	drainClusters              drain_clusters.go  clusters to empty
//	drainReserved              calendar.go        nodes to empty whose reservation has begun
//	settleNominations          settle.go          victims are gone: start the preemptor
//	settleAsked                settle_asked.go    nodes have come that were asked for
//	promoteImpatient           decide.go          patience that is over
//	requeue                    invalidate.go      reopen the classes that events concern
//	restoreNominations         decide.go          preemptors of an earlier term first
//	until no class is open:
//	  nextClass                next_class.go      the class to try: shares, priority, order
//	  start                    start.go           quota, then places, for its first gang:
//	    keepForAskers          kept_asked.go      places of gangs whose nodes come
//	    quota.Queue.Assess                        the assignments of flavors, within quota or not
//	    fit                    fit.go             the node of each pod: placement.Fleet.Solve
//	    backfill               backfill.go        places that delay no head before it, and are
//	                                              not reserved or kept for others (kept_nodes.go)
//	    topologyConflict       grow.go            of a growing gang, with the places it has
//	    keptForShown           kept_shown.go      places of use to a gang that shows itself
//	    putToChecks            checks.go          AdmissionChecks first; it waits with its quota
//	    admit, grow            admit.go, grow.go  allocate, add to the plan
//	    ask                    ask.go             for nodes, after putToChecks
//	    preemptQuota           preempt_quota.go   quota of gangs that wait for nodes or checks
//	    preempt                preempt.go         which gangs to evict; putToChecks, nominate
//	    startSmaller           smaller.go         the largest size that may start instead;
//	                                              putToChecks, then admit or nominate
//	  refreshBlockers          decide.go          head reservations, stale refusals
//	  askDeferred              deferred.go        gangs shown that failed more often than others
//	scheduleRetries            evictable.go       when protection from eviction ends
//	reportNew                  report.go          reasons of gangs
//	reportReservations         decide.go          reasons of heads with a new reservation
//	nextAt                     next_at.go         when to decide without an event
//
// # Files
//
// A function calls none of an earlier group, and within a group the files can be ordered
// so, too (test/arch checks both):
//
//	questions   snapshot_builder, question, explain, explain_changes, explain_clusters,
//	            explain_nodes, explainer, current_reasons, unmet, whatif, snapshot, clone,
//	            reconfigure, certify
//	stages      decide, next_at, report, drain_clusters, settle, settle_asked, recheck, start,
//	            preempt_quota, start_within, smaller, level_after, fit, kept_shown, deferred, ask, kept_asked, most_placed, elsewhere, checks, room, preempt, victims, admit, grow,
//	            backfill, reserve_head,
//	            placed_reservations, ends, reason
//	victims     cascade, enough_victims, cheapest_victims, elastic, needs, trial_eviction,
//	            eviction_cost, price_floor, price, victim_clusters
//	state       replace, defaults, started, growth, parts, asked, shown, waiting, nomination, nodes
//	refusals    preemptors, invalidate, invalidate_reservations, evictable, candidates, share_rank,
//	            use_order, kept_quota, never, behind, next_class, kept_free, head_reservation,
//	            head_reason, foreign, clusters_reasons, clusters, barred_since, calendar,
//	            kept_nodes
//	ground      past_evictions, loss, regret, learned, victim_order, queue, queue_front, equivalence_class,
//	            class_changes, blocked_classes, blocked_tree, first_ranks, local_use,
//	            signature, order, lacking, allowance, savepoint, limit_ranges, namespaces, served, plan,
//	            flavor_clusters, state
//
// # What-ifs
//
// A what-if leaves the state as it was. There are two kinds.
//
// A search within a decision moves gangs on the nodes and in the quota tree, and rolls
// back to a savepoint (savepoint.go). Setting one costs nothing, and a decision sets
// thousands.
//
// Explain and CurrentReasons answer by a whole decision on a copy of the state
// (whatif.go). A decision changes queues, classes, verdicts, reservations, past usage and
// even the configuration; to undo each of those writes would take a log in all of this
// package, and a gap in it would change later decisions. The copy is of three parts, each
// by its size. Gangs and queues are copied: by clone with their verdicts, by rebuilt
// without them, as when the configuration changes. The quota tree is copied (quota.Tree.Copy):
// it is small, and its past usage has no undo log. Nodes are too many to copy, so the
// fleets are shared and forked (placement.Fleet.Fork): a fork is a savepoint with its own
// demand and unschedulable set, which a decision changes, too.
//
// Ask and Answer explain in another goroutine, on a state built of a Snapshot: they
// share no memory with the state.
//
// # Order
//
// The workloads of a queue are ordered by priority, then by submission; an evicted gang
// keeps its place; where the queue has an AdmissionScope, first by what their LocalQueues have
// used (local_use.go). So are the heads of queues. Within a tree of cohorts, however, the head
// that borrows from nearest by comes first, and under fair sharing the one whose branch
// would have the smaller share (quota.Tree, Fairest). A gang is tried on one cluster after
// the other and lives wholly in one (clusters.go), which offers its flavors (flavor_clusters.go).
// In a StrictFIFO queue no gang passes a waiting one; in
// a BestEffortFIFO queue a gang that fits may pass.
//
// # Backfill
//
// The head of a Backfill queue that lacks places gets a reservation: the places that it
// will have when certain gangs have ended. To find them, the started gangs of a cluster
// are taken out in the order of their expected ends until the head fits. A gang that
// comes after the head, in any queue, starts only if it does not delay the head (EASY
// backfill, on nodes instead of sums): it ends before the head starts, by its declared
// run time; or it has places outside the reservation; or the head, placed again, still
// has places at that time. The expected end of a gang is its admission plus its declared
// run time. A gang over that time has a grace of a tenth, at least a minute; then its
// end is unknown. While an end that matters is unknown, others pass freely until the
// patience of the head's queue is over. Then the head's nodes are kept clear: what it needs
// of them goes to no gang after it, however short.
//
// The head of a BestEffortFIFO queue has a patience, too, a day by default. When that is
// over it gets a reservation in the same way; until then all pass it that fit.
//
// No head starves. Let P be the patience of the queue and R the longest time for which a
// gang really has its places. Take a gang that would fit on an empty cluster and has
// become the first of its queue; under ShortestFirst, one that has waited for P and is
// the first of those that have. It starts at most P + 2R later, however many gangs come
// after it. Either its start is known, and no later than the longest declared run from
// now. Or a gang that it waits for is over time; then, from P after its submission, only
// gangs started before the nodes were kept clear keep it, each for at most R. With m gangs
// before it the bound is P + 2(m+1)R. It holds on nodes and among gangs of the same priority: a
// stream of higher priority starves lower ones, and a gang that never ends, such as a
// RayCluster that is not cancelled, is waited for without end. A head that waits for
// quota is not passed in its own queue once its patience is over.
//
// To reserve for a head with k gangs to wait for costs O(log k) searches for places and
// k what-if changes. With a depth of n that is done for each of n heads; the places of those
// before it stay allocated meanwhile (placed_reservations.go). They end, too, so the work grows
// with the square of n; a decision stops at mostReserving, and heads farther back have no
// reservation then. A candidate that fits now costs one more search for each cluster
// with a reservation. Gangs that do not fit cost nothing of this.
//
// # Work
//
// The waiting workloads of a queue with equal pod sets and priority are an equivalence
// class and share one verdict. A class whose first gang does not start is blocked until an
// event reopens it; invalidate.go has the table of events. With b open classes a
// decision costs O(b log b) beside the searches for places; blocked classes cost
// nothing, and an event finds those that it concerns among n in O(log n) each
// (blocked_classes.go). What a decision does itself (evictions, shares, reservations) reopens classes
// at its end, until nothing changes. A gang that would not fit even after evicting every
// candidate is skipped then. Incremental decisions equal a full re-evaluation with two
// exceptions: a nomination is settled when its victims are gone, not before; and whether
// a gang finds places around a reservation can depend on where the search begins.
//
// # Preemption
//
// A gang has others evicted only if a what-if on nodes and quota shows that it starts
// when they are gone. It is then nominated: the places are allocated to it at once, so
// that no other gang gets what the victims free. Gangs that are being torn down already
// count as gone, so a new leader finds the nominations of the last one again without new
// victims.
//
// A running RayCluster may give up workers above its minimum. What it can give up is a
// candidate like a gang, and before any gang is one (elastic.go). Of the gangs that are then
// chosen, those that need not go whole give up a part instead. A part that is being given up
// counts as a gang that is being torn down.
//
// The victims are the cheapest set that is enough: under fair sharing, those of the queues
// with the largest shares, computed again after each eviction; then those of other queues
// before the own; then those of lower priorities; within a priority those with the least
// regret (regret.go); then the fewest. A level is compared before the next lower one, so no
// gang goes where gangs of a lower level are enough. Which sets there are is Kueue's rule
// (candidates.go). Where a victim would evict gangs of a lower priority to come back, it stays
// if evictions of these in its place are enough, and no more in all (cascade.go).
// The search has three steps. First, candidates are evicted in the order of their set,
// within a priority the last admitted first, until that is enough, and those not needed
// are spared: O(log n) what-ifs for n candidates, and one for each victim. Quota is asked
// in the same order; what it permits may depend on the order, and time alone does not
// change it. All victims of a gang are in one cluster (victim_clusters.go). Second, if that found none, one what-if shows whether evicting all candidates
// would be enough. Third, sets of one gang, of two and so on, while they may cost less,
// are searched depth first, bounded by what each gang can bring of what is lacking (quota,
// room for pods) and by the price. That is exponential in the number of victims where the
// bounds do not help, so it has a budget of steps, after which the best set found is taken.
//
// Preemption ends. Of two gangs one is evicted for the other at most once, and the other
// never for it, until one of them ends, is cancelled, loses a node or gets another
// priority; with n gangs those are at most n(n-1)/2 evictions. Which were evicted for which is not
// stored: a new leader counts from the beginning. Beyond that there are only exchanges: one gang for
// another with the same charges, in its own queue by the order of the queue, or in
// another queue if the shares in the tree become more even (quota.Queue.Evens). Suppose
// that nothing happens from outside and that all evictions but exchanges are over. An
// exchange leaves usage as it is and makes the shares more even, or leaves both and
// improves the order in a queue; an admission raises usage. So usage, shares and orders,
// in that order of importance, improve with each step. No state comes twice, and there
// are finitely many.
//
// So under fair sharing no gang is left waiting for what a gang with the same charges
// has in a branch whose share is larger even with the waiting gang started: they would
// be exchanged. Between gangs with different charges there is no such bound. What a
// large gang leaves over when a small one takes its place would go to others, whose
// growing shares could justify the way back.
package admission
