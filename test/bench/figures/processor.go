package figures

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc: USER_HZ is 100 on Linux.
const tick = 10 * time.Millisecond

// ProcessTime is the processor time that a process has used, from /proc; zero where that cannot be
// read.
func ProcessTime(pid int) time.Duration {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(content), ") ") // the name may have spaces
	var state string
	fields := make([]int64, 13) // ppid to stime
	arguments := []any{&state}
	for i := range fields {
		arguments = append(arguments, &fields[i])
	}
	if _, err := fmt.Sscan(rest, arguments...); err != nil {
		return 0
	}
	return time.Duration(fields[10]+fields[11]) * tick
}
