package permission

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot goes on while the machine is suspended, which the clock of package time does not.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(fmt.Sprintf("read CLOCK_BOOTTIME, which each Linux since 2.6.39 has: %v", err))
	}
	return time.Duration(now.Nano())
}
