package sim

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
	// BugFreedBySaying: capacity is freed when the object is gone, not its pods.
	BugFreedBySaying Bug = "pods are not waited for"
	// BugTwice: an object has a name of chance, which only the answer tells.
	BugTwice Bug = "names of objects are not the workload's own"
	// BugEarlyAck: a submission is settled before it is passed on.
	BugEarlyAck Bug = "submissions are acknowledged early"
	// BugClock: the decision depends on something that is no input.
	BugClock Bug = "decisions look at a clock of their own"
	// BugLostOutbox: what a commit says is kept in memory only.
	BugLostOutbox Bug = "messages are not in the transaction"
	// BugUnsaid: what a stream loses while connections stand is not said again, and
	// not asked for.
	BugUnsaid Bug = "what a stream has lost is not said again"
	// BugTakenFirst: a commit takes places before it gives back what they replace.
	BugTakenFirst Bug = "places are taken before others are given back"
	// BugOldMemory: what a process knows of the ledger outlives its term.
	BugOldMemory Bug = "memory of the ledger outlives the term"
	// BugPassing: the ledger's order of submissions is lost.
	BugPassing Bug = "later gangs pass the head of a strict queue"
)

// Bugs lists all of them.
func Bugs() []Bug {
	return []Bug{BugUnfenced, BugUnordered, BugForgotten, BugFreedBySaying, BugTwice, BugEarlyAck, BugClock, BugLostOutbox, BugPassing, BugTakenFirst, BugOldMemory, BugUnsaid}
}
