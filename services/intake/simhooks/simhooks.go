// Package simhooks gives simulations the step logic of intake: the code that its
// process runs, without goroutines and connections.
//
// It has no logic of its own. It exists because test/sim cannot import a service's
// internal packages; services do not import it.
package simhooks

import "muster.dev/muster/services/intake/internal/submission"

// A submission as it arrived, and the message to publish for it.
type (
	Message = submission.Message
	Result  = submission.Result
)

// Read returns the message to publish for a submission.
var Read = submission.Read
