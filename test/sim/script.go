package sim

import "time"

// Script is a list of faults that are to happen, and no others.
type Script struct {
	// Calls by who calls what the how manieth time.
	Calls []CallFault `json:"calls"`
	// Timed are those of the world.
	Timed []TimedFault `json:"timed"`
}

// CallFault is a fault of one call or message.
type CallFault struct {
	Site  string `json:"site"`
	Nth   int    `json:"nth"`
	Fault Fault  `json:"fault"`
}

// TimedFault is a fault of the world. What it strikes is drawn by Pick.
type TimedFault struct {
	At    time.Duration `json:"at"`
	Fault Fault         `json:"fault"`
	Pick  uint64        `json:"pick"`
	For   time.Duration `json:"for"`
}
