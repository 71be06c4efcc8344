package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// While an attempt is removed that the ledger had lost, nothing is written of a workload in
// quarantine, whatever is reported, and it is not admitted. The term that it is released in reads the
// reports again, and it goes on.
func TestARemovalIsNotWrittenInQuarantine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level   QuarantineLevel
		until   time.Duration
		written bool // the end of the removal
	}{
		"nothing is written": {QuarantineFrozen, 0, false},
		"it is held":         {QuarantineHeld, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			s.created(true)
			s.status(1, func(g *event.GangStatus) { g.Created, g.Later = true, 3 })
			s.is(workload.Queued, workload.ReasonRestored)
			clear(s.pods)
			s.observe()
			s.Flush()
			quarantined := Quarantined{Workload: gangID, Level: c.level, Tries: 1, Why: "no"}
			if c.until > 0 {
				quarantined.Until = s.now.Add(c.until)
			}
			s.Quarantine(quarantined, s.now)
			s.step(time.Hour)
			s.Flush()
			if e := s.gang(); e.Phase != workload.Queued || e.Attempt != 4 {
				t.Fatalf("it is %s in attempt %d while attempt 3 is removed", e.Phase, e.Attempt)
			}
			all := func(string) bool { return true }
			if s.ResendCommands(s.now, all); (len(s.Withheld(all)) == 1) == c.written {
				t.Errorf("commands of %v are withheld; that one is written: %t", s.Withheld(all), c.written)
			}
			if other := s.Withheld(func(subject string) bool { return subject == "another" }); len(other) > 0 {
				t.Errorf("of another command those of %v are withheld", other)
			}
			if command, _ := s.lastFlushed(); (command != nil) != c.written {
				t.Errorf("sent again is %+v", command)
			}
			s.status(3, func(g *event.GangStatus) { g.Gone, g.Released = true, true })
			s.Decide(s.now)
			changes := s.Flush()
			if wrote := len(changes.Updated)+len(changes.History)+len(changes.Messages) > 0; wrote != c.written {
				t.Errorf("written is %+v", changes)
			}
		})
	}
}
