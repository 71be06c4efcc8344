package httpapi

import "time"

// MostDeadLetters is how many dead letters are listed, the last ones.
const MostDeadLetters = 1000

// DeadLetters lists messages that could not be processed, the oldest first.
type DeadLetters struct {
	DeadLetters []DeadLetter `json:"deadLetters"`
	// Older is the number of those that are left out.
	Older int `json:"older,omitempty"`
}

// DeadLetter is a message that could not be processed. Its content may have secrets of those
// who sent it, and is shown over NATS only.
type DeadLetter struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"sequence"` // in the stream of such messages
	At       time.Time `json:"at"`       // when it was given up
	Stored   time.Time `json:"stored"`   // when it had come
	Reason   string    `json:"reason"`
	Bytes    int       `json:"bytes"` // of the message
}
