package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MemoryMiB returns the resident memory of a process, an error when it has ended.
func MemoryMiB(pid int) (int64, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("process %d: resident memory %q: %w", pid, rest, err)
			}
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("process %d: has ended", pid) // A zombie has no memory.
}
