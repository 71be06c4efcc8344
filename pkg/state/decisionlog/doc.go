// Package decisionlog records the inputs of a state and the outcome of each commit, so that
// every decision can be repeated.
//
//	inputs, each  ---> state ---> outcome of a commit ---> Replica: what the ledger has
//	with its time        |                  |
//	      |              |                  +--- compared by a replay
//	      +-- Recorder --+--> record, kept by queue-manager's store
//
// A state is pure, so the same inputs on the same start give the same outcome, on any
// machine. A Replica follows the outcomes alone.
//
// The package has bytes and values only. It is not for storage (queue-manager's package
// store) nor for the encoding of events (package event).
package decisionlog
