// Package engine runs queue-manager's terms as leader: it gathers what arrives,
// lets the state decide, commits the outcome in one transaction, and only then
// settles the messages. What is to be published is in the transaction, too, and the relay
// publishes it later.
//
// # The loop of a term
//
// Run (run.go) leads term after term, lead (term.go) begins and ends one, and
// leader.run (leader.go) is its loop. An iteration has these stages:
//
//	wait     leader.run        leader.go        the next message, question, change or tick
//	gather   collectBatch      inputs.go        the message of wait, and what else has arrived:
//	                                            observations before submissions
//	apply    Step.Apply        step.go          messages change the state (apply.go), the
//	                                            state decides, its inputs are recorded (record.go)
//	prepare  Writer.Prepare    writer.go        one transaction of the decision
//	queue    commitQueue.add   commit_queue.go  the next iteration begins here
//	commit   Writer.Write      writer.go        in order, on the queue's goroutine
//	settle   Writer.Write      writer.go        messages go to the relay, which publishes them
//	                                            later; inputs are acknowledged
//
// One goroutine decides, so there is one order of decisions, and another writes them in
// that order. While a commit waits for the disk the next batch is decided, and what
// arrives meanwhile makes the one after it, so the number of commits does not grow with
// the load.
//
// # When a commit fails
//
// The term ends: the state is discarded and loaded again, and unsettled messages come
// again. Writer.Diagnose (refused_commits.go) and Step.diagnoseReads
// (refused_reads.go) find what the database refuses. It is put in quarantine
// (quarantine.go), rejected (rejections.go) or dead-lettered (dead_letters.go), and
// Memory (memory.go) has the next term know it.
//
// # When the leader is replaced
//
// Nothing has to be repaired then, because a replaced leader cannot write:
//
//  1. The successor begins a term with a larger epoch: the time in microseconds plus a
//     random number (store.LeastEpochAndStep). From then on Postgres refuses the
//     transactions of the one before.
//  2. It takes the state that it has kept current as a standby, and reads the last commits.
//     It loads all of the state when the configuration has changed, or when it could not
//     follow (standby.takeOver).
//  3. Its relay begins with what the outbox has. A replaced relay publishes nothing behind
//     it: each batch is checked against the epoch (store.CheckEpochAndAddManifests), and
//     NATS refuses a message of a batch that was checked before if the stream does not end
//     where the relay expects it.
//  4. It decides when it has read everything that was observed before
//     (leader.beginDecisions).
//
// # When the database was restored to an older state
//
// Before its loop begins a term compares the streams with the ledger (leader_restored.go)
// and restores what the ledger has lost (restored.go, resubmit.go). Of a workload in
// quarantine it can write nothing; a note in NATS has the terms after it look for what the
// streams have of that workload again (unrecovered.go). In names of this
// package, recovery is that, and never the replacement of a leader.
package engine
