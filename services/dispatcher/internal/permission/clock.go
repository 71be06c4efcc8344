package permission

import "time"

// Clock is the time of a process.
type Clock interface {
	// Elapsed is the time since some moment. It goes on evenly, whatever is set.
	Elapsed() time.Duration
	Wall() time.Time
}

// MachineClock is the clock of this machine.
func MachineClock() Clock { return machine{time.Now()} }

type machine struct{ began time.Time }

// Elapsed implements Clock.
func (m machine) Elapsed() time.Duration { return time.Since(m.began) }

// Wall implements Clock.
func (m machine) Wall() time.Time { return time.Now().Round(0) }
