// Package step gives simulations the step logic of queue-manager: the very code
// that its processes run, without their goroutines, connections and clock.
//
// It has no logic of its own. It is for test/sim, because what is internal to a
// service cannot be imported from there; services do not import it.
package step

import (
	"muster.dev/muster/services/queue-manager/internal/engine"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// The step of a term, and what it works with.
type (
	Desk        = engine.Desk
	Decision    = engine.Decision
	Ledger      = engine.Ledger
	Transaction = engine.Transaction
	Record      = store.Record
	// Refusal is what a ledger does not store, and Verdict what follows from it.
	Refusal = store.Refusal
	Verdict = engine.Verdict
	Asides  = engine.Asides
)

// The relay of the outbox, and what it works with.
type (
	Relay         = relay.Relay
	RelayOptions  = relay.Options
	RelaySteps    = relay.Steps
	RelayLedger   = relay.Ledger
	RelayBus      = relay.Bus
	Missing       = relay.Missing
	Undeliverable = relay.Undeliverable
	Outgoing      = store.Outgoing
	Mark          = store.Mark
	Told          = store.Told
)

// Errors of a ledger.
var (
	ErrFenced = store.ErrFenced
	ErrStale  = store.ErrStale
)

// NewRelay returns the relay of a term.
func NewRelay(o RelayOptions) *Relay { return relay.New(o) }

// AskFor is how long answers are waited for.
const AskFor = engine.AskFor

// Encode makes the messages of the outbox.
var Encode = store.Encode

// WithManifest puts the manifest into a command as Encode wrote it.
var WithManifest = store.WithManifest

// NextEpoch says how an epoch follows the stored one.
var NextEpoch = store.NextEpoch
