// Package state is queue-manager's state machine: queues, live workloads, nodes and
// reservations, and the rules by which an input changes them. It collects the changes
// of a batch for one transaction. Queue-manager drives it with messages, package
// scenario with the events of a file, so that users test the code that runs.
//
// It is not for I/O: it has no context, clock or logger, and the time is an argument.
// It is not the truth, which is Postgres: when a transaction fails, the state is
// discarded and loaded again. It does not choose places or victims, which is package
// admission's work. It is not safe for concurrent use.
//
// Every input may come twice, late, or out of order. Submissions are identified by id
// and digest, observations by version, statuses by attempt; an old input changes
// nothing.
//
// # Parts
//
// State has the entry points: inputs, Decide, Flush, and queries. It is made of types with
// one task each:
//
//	State        inputs and decisions; evaluate has the order of what follows an
//	             observation of pods. What is observed of a node sets the timers of the
//	             gangs with places on it, and their deadlines do the rest (observe.go,
//	             status.go, saving.go, submit.go, move.go, decide.go, evaluate.go); clusters that are
//	             out of reach (permission.go, leave.go, stranded.go)
//	  recovery     what the streams have and an older ledger does not know
//	               (restored.go, removals.go, unknown.go, resend.go)
//	  deadlines    what is due for started workloads (deadlines.go)
//	    healing      lost pods and places (healing.go, places.go, loss_outcome.go,
//	                 disruption.go, healing_reasons.go)
//	      sizing       more and fewer places for a running gang (sizing.go, growth.go,
//	                   shrink.go)
//	    idling       unused clusters (idling.go)
//	  lifecycle    phases, teardown, commands, events, timers (lifecycle.go, transition.go,
//	               evict.go, requeue.go, learning.go, commands.go, changes.go, changeset.go, reasons.go,
//	               timers.go, due.go); requests for nodes (provisioning.go, provisioned.go)
//	               and to AdmissionChecks (checks.go, recheck.go, check_answers.go,
//	               check_updates.go)
//	    inquiries    questions to watchers and dispatchers (inquiries.go, heard.go,
//	                 silence.go)
//	    held         what is held now (held.go)
//	    tables       queues, workloads, nodes, pods (tables.go, entry.go, nodes.go, pods.go,
//	                 unreserved.go)
//
// Calls go down only: a type does not know the types above it, and the files can be put
// into an order in which a function calls none of an earlier file (test/arch checks that).
// All but inquiries stand on the lifecycle and the tables.
//
// # Phases
//
// A workload starts in queued and moves along these arrows, which a test compares with
// workload.Phase.MayBecome. Only setPhase, in transition.go, assigns a phase.
//
//	queued     -> admitted, cancelled, failed
//	admitted   -> dispatched, running, succeeded, failed, evicting, cancelling
//	dispatched -> running, succeeded, failed, evicting, cancelling
//	running    -> succeeded, failed, evicting, cancelling
//	evicting   -> queued, cancelling, succeeded, failed
//	cancelling -> cancelled
//
// # Evictions
//
// A started workload is evicted by evictNow or evictWithGrace (evict.go). The kind of the
// reason decides the rest, by requeueRules (requeue.go): whether the eviction counts
// towards the workload's retries, and how long the next attempt waits.
//
//	cause                                      kind        by              counts  back-off
//	admission preempts it or drains its queue  Preempted,  evictWithGrace  no      none
//	                                           Drained
//	its object, or every pod, not created in   NotCreated  evictNow        no      by attempts
//	time (deadlines.go)
//	not ready in time (deadlines.go)           NotReady    evictNow        yes     by faults
//	pods lost and not replaced in time, or     PodLost     evictNow        yes     by faults
//	onPodLoss is evict (healing.go,
//	deadlines.go); a failed job that is to be
//	retried (status.go)
//	its node lost or drained, or its place     NodeLost,   evictNow        no      none
//	taken, and its pods cannot go elsewhere    Drained,
//	(places.go)                                PlaceLost
//	its cluster left by force (leave.go), or   ClusterLost releaseLost     no      none
//	its permission ran out (permission.go)
//	it does not give up pods above its minimum Preempted   evictNow        no      none
//	in time (deadlines.go)
//	the API server forbids its object for now  NotCreated  evictNow        no      by attempts
//	(status.go)
//	its dispatcher stopped it, because its     ClusterLost evictNow        no      none
//	permission ran out (status.go)
//	an operator or its submitter asks for it   Requeued    evictWithGrace  no      none
//	(operate.go)
//	an AdmissionCheck asks to be retried       CheckRetry  evictWithGrace  no      by the check
//	(check_answers.go)
//	an AdmissionCheck rejects it               CheckRejected evictWithGrace no     it fails
//	(check_answers.go)
//	an exit code that is not retried           ExitCode    evictNow        no      it fails
//	(evaluate.go)
//	its removal was published before a restore Restored    evictNow        no      none
//	(restored.go)
//
// # Exceptions
//
// Two steps follow no arrow. A cancelling workload may be cancelled again, which ends
// its grace period. Recovery from an older database (restored.go, removals.go)
// moves a workload from any phase to the published end, or back to queued; it begins with
// Ahead, a submission that comes again, or the status of a later attempt.
package state
