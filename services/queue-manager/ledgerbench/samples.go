package main

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// samples are durations of one kind.
type samples []time.Duration

// quantile returns the value that the given part of the samples do not exceed.
func (s samples) quantile(part float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))].Round(10 * time.Microsecond)
}

// heapInUse is the memory of live data, in bytes.
func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// residentOf is the resident memory of a process in bytes, now and at its peak.
func residentOf(pid int) (now, peak uint64) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseUint(fields[1], 10, 64)
		switch fields[0] {
		case "VmRSS:":
			now = kilobytes << 10
		case "VmHWM:":
			peak = kilobytes << 10
		}
	}
	return now, peak
}

func megabytes(bytes uint64) uint64 { return bytes >> 20 }
