package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// olderAgain has Postgres restored to an older state by 0.3 s again and again, at once (a
// Pick that six divides), now and then with the kept submissions lost. Seeds rarely draw
// what BugWatermarkMoves takes: a message that is published in the lost time, with its relay
// about to note that when the time is lost.
func olderAgain() *Script {
	var s Script
	for at := 7 * time.Second; at < faultsFor; at += 2700 * time.Millisecond {
		s.Timed = append(s.Timed, TimedFault{At: at, Fault: Older, Pick: 6 * uint64(at/time.Millisecond), For: 300 * time.Millisecond})
	}
	return &s
}

// TestPostgresIsRestoredToAnOlderStateAgainAndAgain plays the story that finds
// BugWatermarkMoves without the bug.
func TestPostgresIsRestoredToAnOlderStateAgainAndAgain(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{14, 15, 22} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := Run(Options{Seed: seed, Script: olderAgain()})
			if r.Breach != nil {
				t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
			}
			if r.Faults[Older] == 0 {
				t.Errorf("seed %d: Postgres was not restored to an older state: %v", seed, r.Faults)
			}
		})
	}
}

// TestWhatIsLostIsNamedThoughNATSDoesNotAnswer has the first dead letters of each leader
// lost on their way.
func TestWhatIsLostIsNamedThoughNATSDoesNotAnswer(t *testing.T) {
	t.Parallel()
	script := &Script{Timed: []TimedFault{{At: 22 * time.Second, Fault: Older, For: 65 * time.Second}}}
	for _, leader := range []string{"queue-manager-1", "queue-manager-2"} {
		for nth := range 4 {
			script.Calls = append(script.Calls, CallFault{leader + " StoreDeadLetter", nth + 1, LostRequest})
		}
	}
	for _, seed := range []uint64{14, 18, 20} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := Run(Options{Seed: seed, Script: script})
			if r.Breach != nil {
				t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
			}
			if r.Faults[LostRequest] == 0 {
				t.Errorf("seed %d: no dead letter was lost: %v", seed, r.Faults)
			}
		})
	}
}

// TestWhatIsForgottenEverywhereBeginsAgain: a gang comes to its end in time that Postgres
// loses, and NATS loses all data before a term begins. Its first attempt is created once
// more. Where NATS has lost nothing, the term knows of the first one.
func TestWhatIsForgottenEverywhereBeginsAgain(t *testing.T) {
	t.Parallel()
	const back = 133_606 * time.Millisecond
	script := &Script{Timed: []TimedFault{
		{At: 54_467 * time.Millisecond, Fault: Older, Pick: 3, For: 78_326 * time.Millisecond},
		{At: back, Fault: ServiceAway, Pick: 1227238293156746, For: 20 * time.Second},
	}}
	kept := Run(Options{Seed: 1287, Script: script})
	script.Timed = append(script.Timed, TimedFault{At: back + 18*time.Second, Fault: NATSWiped, For: 100 * time.Millisecond})
	lost := Run(Options{Seed: 1287, Script: script})
	for name, r := range map[string]Result{"kept by NATS": kept, "lost by NATS": lost} {
		t.Run(name, func(t *testing.T) {
			if r.Breach != nil {
				t.Errorf("%s: %v\n%s", name, r.Breach, strings.Join(r.Story, "\n"))
			}
		})
	}
	if kept.Made[madeAgain] != 0 || lost.Made[madeAgain] == 0 {
		t.Errorf("%d attempts began again with NATS as it was, %d without its data", kept.Made[madeAgain], lost.Made[madeAgain])
	}
}
