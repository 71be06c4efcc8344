package bus

import "time"

const (
	// RoundTakes is the time in which everything is published once more, and RoundStep
	// the pause between its parts: even a loss that went unnoticed is repaired.
	RoundTakes = 5 * time.Minute
	RoundStep  = 3 * time.Second
	// hastyFactor is how much faster a hasty round is.
	hastyFactor = 10
	// roundMost bounds the part of one step; a round of more takes longer.
	roundMost = 500
)

// Round spreads the repetition of everything that was published over time. The zero
// value is the slow one. It is not safe for concurrent use.
type Round struct{ hasty int }

// Hasten makes the next full round a fast one: who listens may be new. It does
// nothing while there is one.
func (r *Round) Hasten() {
	if r.hasty == 0 {
		r.hasty = int(RoundTakes / RoundStep / hastyFactor)
	}
}

// Step returns how many of all things are to be published once more now.
func (r *Round) Step(all int) int {
	steps := int(RoundTakes / RoundStep)
	if r.hasty > 0 {
		r.hasty--
		steps /= hastyFactor
	}
	return min((all+steps-1)/steps, roundMost)
}
