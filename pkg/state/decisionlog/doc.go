// Package decisionlog records the inputs of a state and the outcome of each commit, so
// that every decision can be repeated: the inputs in their order, each with its time,
// and the changes that followed. A state is pure, so the same inputs on the same start
// give the same outcome, on any machine. A Replica follows the outcomes alone.
//
// It is bytes and values only. It is not for storage, which is queue-manager's store's,
// nor for the encoding of events, which is package event's.
package decisionlog
