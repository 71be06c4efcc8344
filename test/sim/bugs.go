package sim

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Bug is a planted fault of the software: a switch that takes one of the things
// away by which Muster keeps its promises. Each must be found.
type Bug string

// Bugs.
const (
	NoBug Bug = ""
	// BugUnfenced: the ledger takes what a replaced leader writes.
	BugUnfenced Bug = "the ledger does not compare epochs"
	// BugUnordered: NATS takes a message without looking what is last.
	BugUnordered Bug = "messages are not compared with what they are to follow"
	// BugForgotten: that a stream has lost something is known to the leader only.
	BugForgotten Bug = "the loss of messages is not noted"
	// BugFreedEarly: capacity is freed when the object is gone, not its pods.
	BugFreedEarly Bug = "pods are not waited for"
	// BugTwice: an object has a name of chance, which only the answer has.
	BugTwice Bug = "names of objects are not the workload's own"
	// BugEarlyAck: a submission is settled before it is passed on.
	BugEarlyAck Bug = "submissions are acknowledged early"
	// BugClock: the decision depends on something that is no input.
	BugClock Bug = "decisions look at a clock of their own"
	// BugLostOutbox: what a commit says is kept in memory only.
	BugLostOutbox Bug = "messages are not in the transaction"
	// BugUnpublished: what a stream loses while connections stand is not sent again, and
	// not asked for.
	BugUnpublished Bug = "lost messages of a stream are not republished"
	// BugTakenFirst: a commit takes places before it gives back what they replace.
	BugTakenFirst Bug = "places are taken before others are given back"
	// BugOldMemory: what a process knows of the ledger outlives its term.
	BugOldMemory Bug = "memory of the ledger outlives the term"
	// BugEveryTerm: who is refused is not found, so the next term decides the same.
	BugEveryTerm Bug = "a refusal ends the term every time"
	// BugByLabels: whatever has a gang's labels is taken for a member.
	BugByLabels Bug = "labels prove who is a member"
	// BugOldCohort: the places of gangs stay charged to the cohort that their queue was
	// in when they got them.
	BugOldCohort Bug = "quota stays charged to the cohort that a queue has left"
	// BugLostNomination: a new leader does not know for whom gangs are being evicted.
	BugLostNomination Bug = "nominations of preemptors are forgotten at a take-over"
	// BugAnyNamespace: a pod of another namespace is taken for a member when it names the
	// object of the gang as its controller.
	BugAnyNamespace Bug = "the namespace of a pod is not looked at"
	// BugUnstoredNominations: what an evicted gang leaves is kept for no gang after a
	// take-over, and a replay knows no better.
	BugUnstoredNominations Bug = "nominations of preemptors are written nowhere"
	// BugLarger: a gang that grows is given a place more than it wants.
	BugLarger Bug = "gangs grow by more than they are given"
	// BugSurplus: the places of pods that were taken away are kept.
	BugSurplus Bug = "gangs that become smaller keep their places"
	// BugGenerous: no gang is evicted from quota that is lent out.
	BugGenerous Bug = "quota that is lent is not reclaimed"
	// BugUncompared: a term does not look for what a database restored to an older state has
	// forgotten.
	BugUncompared Bug = "streams are not compared with an older database"
	// BugLateUncompared: a term does not compare what arrives after it has looked.
	BugLateUncompared Bug = "messages that arrive after the comparison are not compared"
	// BugSameEpoch: epochs are counted, so that a database restored to an older state gives
	// those that it has forgotten again.
	BugSameEpoch Bug = "epochs that were forgotten are given again"
	// BugWatermarkMoves: a term that goes on when the database was restored to an older state
	// says there how far the streams go.
	BugWatermarkMoves Bug = "watermarks are moved in an older database"
	// BugUnawaited: a term does not have removed what events say of lost attempts, and the
	// dispatcher does not look for them before it creates an object.
	BugUnawaited Bug = "an attempt does not wait for what is left of earlier ones"
	// BugForgottenUsage: what queues used in the past is in the memory of the leader only.
	BugForgottenUsage Bug = "past usage is forgotten at a take-over"
	// BugUnlearned: what was learned of the cost of evictions is in the memory of the leader only.
	BugUnlearned Bug = "what is learned of starts and returns is not stored"
	// BugCramped: the dispatcher does not see the quotas of a namespace.
	BugCramped Bug = "pods start without room for the others in the quota"
	// BugNotWhole: the dispatcher is not told which gangs start whole.
	BugNotWhole Bug = "gangs that are to start whole start early"
	// BugAnyAttempt: a requeue does not say which attempt is meant.
	BugAnyAttempt Bug = "a requeue takes down whatever attempt there is"
	// BugForgottenHold: that a workload is held is known to the leader only.
	BugForgottenHold Bug = "holds of workloads are forgotten at a take-over"
	// BugImpatient: a cancellation is given up some seconds after it has come.
	BugImpatient Bug = "a cancellation does not wait for its submission"
	// BugSwallowed: the id of what intake publishes does not have the message that it read, so
	// NATS takes the same submission again for the first one, and drops it.
	BugSwallowed Bug = "the same submission again is dropped as a duplicate"
	// BugBare: a stream that has lost its files stays as it is.
	BugBare Bug = "a stream without its files is not made again"
	// BugLeaseEnds: a process ends, and is not started again, when a request for its Lease fails.
	BugLeaseEnds Bug = "a failed request for a Lease ends the process"
	// BugHasty: a standby takes a Lease when half of its time is over.
	BugHasty Bug = "a standby takes a Lease before its end"
	// BugAgeless: nodes are reported without their age, so that none counts as one that has come
	// for a request.
	BugAgeless Bug = "places kept for a gang that asks for nodes are given to others"
	// BugDeaf: a term does not know when what it reads was reported.
	BugDeaf Bug = "the silence of a cluster before a term is forgotten"
	// BugUnasked: what operators asked in time that a restored database has lost is not asked
	// again.
	BugUnasked Bug = "what was asked in lost time is not asked again"
	// BugDropped: a message that NATS has no room for counts as sent.
	BugDropped Bug = "a message that a full disk refuses counts as sent"
	// BugUnreported: no process reports that NATS stores nothing.
	BugUnreported Bug = "a full disk is not reported"
	// BugPassing: the ledger's order of submissions is lost.
	BugPassing Bug = "later gangs pass the head of a strict queue"
	// BugForgottenRequest: for which gangs nodes are asked for is known to the leader only.
	BugForgottenRequest Bug = "requests for nodes are forgotten at a take-over"
	// BugUnlabelled: the dispatcher does not find the requests that it has made.
	BugUnlabelled Bug = "requests for nodes are not found by their labels"
	// BugRepeatedSequences: a stream that is made again has the sequences of the one before.
	BugRepeatedSequences Bug = "a stream that is made again begins at the same sequence"
)

// asStored is a record as a term reads it, with BugUnstoredNominations without nominations.
func (l *ledger) asStored(r workload.Record) workload.Record {
	switch l.w.Bug {
	case BugUnstoredNominations:
		return withoutNomination(r)
	case BugForgottenRequest:
		return withoutRequest(r)
	}
	return r
}

func (l *ledger) allAsStored(c state.Changes) state.Changes {
	if l.w.Bug != BugUnstoredNominations {
		return c
	}
	c.Updated, c.Added = slices.Clone(c.Updated), slices.Clone(c.Added)
	for i := range c.Updated {
		c.Updated[i] = withoutNomination(c.Updated[i])
	}
	for i := range c.Added {
		c.Added[i].Record = withoutNomination(c.Added[i].Record)
	}
	return c
}

func withoutNomination(r workload.Record) workload.Record {
	if r.Reason != nil && r.Reason.Kind == workload.ReasonWaitingForEviction {
		r.Reason = nil
	}
	return r
}

// Bugs lists all of them.
func Bugs() []Bug {
	return []Bug{BugUnfenced, BugUnordered, BugForgotten, BugFreedEarly, BugTwice, BugEarlyAck, BugClock, BugLostOutbox, BugPassing, BugTakenFirst, BugOldMemory, BugUnpublished, BugEveryTerm, BugByLabels,
		BugOldCohort, BugLostNomination, BugUncompared, BugLateUncompared, BugSameEpoch, BugWatermarkMoves,
		BugAnyNamespace, BugUnstoredNominations, BugLarger, BugSurplus, BugGenerous, BugUnawaited, BugForgottenUsage, BugCramped, BugNotWhole,
		BugAnyAttempt, BugForgottenHold, BugImpatient, BugSwallowed, BugBare, BugLeaseEnds, BugDeaf, BugForgottenRequest, BugUnlabelled,
		BugUnasked, BugDropped, BugUnreported, BugRepeatedSequences, BugUnlearned, BugHasty, BugAgeless}
}
