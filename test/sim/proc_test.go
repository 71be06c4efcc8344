package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A park ends by its own timer or by a wake, never by the timer of one before it that
// a wake has ended.
func TestTheTimerOfAWaitEndsNoLaterOne(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &World{start: start, now: start, random: rand.New(rand.NewPCG(1, 1))}
	w.check = newChecker(w)
	m := &machine{w: w, name: "m", cut: map[string]bool{}}
	var ended []time.Duration
	p := m.spawn("parks", func(p *proc) {
		for _, most := range []time.Duration{2 * time.Second, 5 * time.Second} {
			p.park(most)
			ended = append(ended, w.now.Sub(start))
		}
	})
	w.after(time.Second, p.wake) // ends the first one, whose timer is due in the second
	w.loop()
	if want := []time.Duration{time.Second, 6 * time.Second}; len(ended) != 2 || ended[0] != want[0] || ended[1] != want[1] {
		t.Errorf("parks ended after %v, want %v", ended, want)
	}
}
