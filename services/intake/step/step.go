// Package step gives simulations the step logic of intake: the very code that its
// process runs, without its goroutines and connections.
//
// It has no logic of its own. It is for test/sim, because what is internal to a
// service cannot be imported from there; services do not import it.
package step

import "muster.dev/muster/services/intake/internal/submission"

// A submission as it arrived, and what is to be published for it.
type (
	Message = submission.Message
	Result  = submission.Result
)

// Read turns a message into what is to be published.
var Read = submission.Read
