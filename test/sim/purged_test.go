package sim

import (
	"fmt"
	"testing"
	"time"
)

// purgedEvents purges the stream of events again and again, every second time while the leader
// stands still.
func purgedEvents() *Script {
	var s Script
	for at := 10 * time.Second; at < faultsFor; at += 11 * time.Second {
		pick := uint64(ofEvents)
		if len(s.Timed)%2 == 1 {
			pick |= unread
		}
		s.Timed = append(s.Timed, TimedFault{At: at, Fault: Purged, Pick: pick, For: time.Second})
	}
	return &s
}

// TestPurgedEventsComeBack: the stream has an event of the end of each workload, although it was
// purged. NATS remembers the ids of what it had.
func TestPurgedEventsComeBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			if r := Run(Options{Seed: seed, Script: purgedEvents()}); r.Breach != nil {
				t.Error(r.Breach)
			}
		})
	}
}
