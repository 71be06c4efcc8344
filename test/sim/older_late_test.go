package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// olderAndLate has Postgres restored to an older state again and again, and the leader stand
// still at each time. Its messages of the lost time arrive when the next leader has compared
// the streams.
func olderAndLate() *Script {
	var s Script
	for at := 7 * time.Second; at < faultsFor; at += 11 * time.Second {
		s.Timed = append(s.Timed,
			TimedFault{At: at - 100*time.Millisecond, Fault: Older, For: 1350 * time.Millisecond},
			TimedFault{At: at, Fault: LateLeader, Pick: uint64(1200 * time.Millisecond), For: 5 * time.Second})
	}
	return &s
}

// TestMessagesOfLostTimeMayArriveLate plays the story that finds BugLateUncompared
// without the bug.
func TestMessagesOfLostTimeMayArriveLate(t *testing.T) {
	t.Parallel()
	late := 0
	for _, seed := range []uint64{0, 12, 14, 18, 21, 37, 42, 46} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := Run(Options{Seed: seed, Script: olderAndLate()})
			if r.Breach != nil {
				t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
			}
			late += r.Made[madeLate]
		})
	}
	if late == 0 {
		t.Errorf("there are no %s in these seeds", madeLate)
	}
}

// TestLateMessagesOfLostTimeAreDrawn holds the seeds in which Postgres is restored to an
// older state to having such messages.
func TestLateMessagesOfLostTimeAreDrawn(t *testing.T) {
	t.Parallel()
	late := 0
	for _, seed := range []uint64{1481, 1709, 1845} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := Run(Options{Seed: seed})
			if r.Breach != nil {
				t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
			}
			late += r.Made[madeLate]
		})
	}
	if late == 0 {
		t.Errorf("there are no %s in these seeds", madeLate)
	}
}
