// Package boottime is a clock that goes on while the machine is suspended, as a lease that this
// machine holds does for everybody else. The clock of package time stands still then. It tells
// lengths of time, never the date.
package boottime

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time since the machine was started.
func Now() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(fmt.Sprintf("read CLOCK_BOOTTIME, which each Linux since 2.6.39 has: %v", err))
	}
	return time.Duration(now.Nano())
}
