// Package simhooks gives simulations the step logic of queue-manager: the very code
// that its processes run, without their goroutines, connections and clock.
//
// It has no logic of its own. It is for test/sim, because what is internal to a
// service cannot be imported from there; services do not import it.
package simhooks

import (
	"muster.dev/muster/services/queue-manager/internal/engine"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// The step and the writer of a term, and what they work with.
type (
	Step        = engine.Step
	Decision    = engine.Decision
	Writer      = engine.Writer
	Transaction = store.Transaction
	Record      = store.Record
	// Refusal is what a ledger does not store.
	Refusal = store.Refusal
	Part    = store.Part
	// Memory is what a process keeps from one term to the next.
	Memory = engine.Memory
)

// The relay of the outbox, and what it works with.
type (
	Relay         = relay.Relay
	RelayOptions  = relay.Options
	RelaySteps    = relay.Steps
	CommandsFound = relay.CommandsFound
	Undeliverable = relay.Undeliverable
	Outgoing      = store.Outgoing
	Watermark     = store.Watermark
	HistoryEvent  = store.HistoryEvent
)

// NewWriter returns the writer of a step's decisions.
var NewWriter = engine.NewWriter

// Errors of a ledger.
var (
	ErrFenced        = store.ErrFenced
	ErrStale         = store.ErrStale
	ErrCommitMissing = store.ErrCommitMissing
)

// NewRelay returns the relay of a term.
func NewRelay(o RelayOptions) *Relay { return relay.New(o) }

// What the streams have and a ledger restored to an older state does not know.
type (
	Recovery    = engine.Recovery
	Found       = relay.Found
	Unrecovered = relay.Unrecovered
	MessageRef  = store.MessageRef
)

// Answers reports whether an event answers a submission.
var Answers = engine.Answers

// FindAhead looks for it, LastEpoch for the epochs of the messages in the streams, and
// DistrustCommands has all commands sent again.
var (
	FindAhead        = relay.FindAhead
	LastEpoch        = relay.LastEpoch
	DistrustCommands = relay.DistrustCommands
)

// AskFor is the argument of state.SetAnswerTimeout.
const AskFor = engine.AskFor

// Store is the ledger in Postgres, and Configuration a transaction that changes the queues.
type (
	Store         = store.Store
	Configuration = store.Configuration
)

// OpenStore opens a ledger, and Migrate makes one.
var (
	OpenStore       = store.Open
	Migrate         = store.Migrate
	DefaultTimeouts = store.DefaultTimeouts
)

// NewMemory is the memory of a process that starts.
var NewMemory = engine.NewMemory

// Parts of a commit that may be refused.
const (
	PartAdded   = store.PartAdded
	PartPlaces  = store.PartPlaces
	PartEnd     = store.PartEnd
	PartHistory = store.PartHistory
	PartMessage = store.PartMessage
)

// Explained marks the errors of Postgres that are distinguished. Suspect reports whether one is
// for what was in the transaction, and Passing returns the SQLSTATE of one that passes by waiting.
var (
	Explained = store.Explained
	Suspect   = store.Suspect
	Passing   = store.Passing
)

// Encode makes the messages of the outbox.
var Encode = store.Encode

// LeastEpochAndStep is how an epoch follows the stored one.
var LeastEpochAndStep = store.LeastEpochAndStep
