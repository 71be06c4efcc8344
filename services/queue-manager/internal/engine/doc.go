// Package engine runs queue-manager's terms as leader: it gathers what arrives,
// lets the state decide, commits the outcome in one transaction, and only then
// settles the messages and lets the outbox go.
//
// # The loop of a term
//
// Run (run.go) leads term after term, lead (term.go) begins and ends one, and
// leader.run (leader.go) is its loop. A round has these stages:
//
//	wait     leader.run        leader.go        the next message, question, change or tick
//	gather   collectBatch      inputs.go        the message of wait, and what else has arrived:
//	                                            observations before submissions
//	apply    Step.Apply        step.go          messages change the state (apply.go), the
//	                                            state decides, its inputs are recorded (record.go)
//	prepare  Writer.Prepare    writer.go        one transaction of the decision
//	queue    commitQueue.add   commit_queue.go  the next round begins here
//	commit   Writer.Write      writer.go        in order, on the queue's goroutine
//	settle   Writer.Write      writer.go        messages leave and inputs are acknowledged
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
// # When the database was restored to an older state
//
// Before the first round a term compares the streams with the ledger (leader_recovery.go)
// and restores what the ledger has lost (recovery.go, resubmit.go).
package engine
