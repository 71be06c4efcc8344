//go:build !linux

// Package boottime is a clock that goes on while the machine is suspended. Elsewhere than on
// Linux it stands still then: Muster runs on Linux, and this is for work on it elsewhere.
package boottime

import "time"

var began = time.Now()

// Now is the time since this process was started.
func Now() time.Duration { return time.Since(began) }
