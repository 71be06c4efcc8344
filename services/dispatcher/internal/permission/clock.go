package permission

import (
	"time"

	"muster.dev/muster/pkg/service/boottime"
)

// Clock is the time of a process.
type Clock interface {
	// Elapsed is the time since some moment. It goes on evenly, whatever is set, and while the
	// machine is suspended.
	Elapsed() time.Duration
	Wall() time.Time
}

// MachineClock is the clock of this machine.
func MachineClock() Clock { return &machine{began: boottime.Now()} }

type machine struct{ began time.Duration }

// Elapsed implements Clock.
func (m *machine) Elapsed() time.Duration { return boottime.Now() - m.began }

// Wall implements Clock.
func (m *machine) Wall() time.Time { return time.Now().Round(0) }
