package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
)

// TestLostAnswersAreNoticed: the stream of answers is a queue, of which messages go when the
// term has received and settled them.
func TestLostAnswersAreNoticed(t *testing.T) {
	t.Parallel()
	made, again := time.Unix(1000, 0), time.Unix(2000, 0)
	for name, c := range map[string]struct {
		received      []uint64
		first, second bus.StreamState
		want          bool
	}{
		"empty as before":                {nil, bus.StreamState{Created: made}, bus.StreamState{Created: made}, false},
		"received and settled":           {[]uint64{8, 9}, bus.StreamState{Created: made, First: 8, Last: 9}, bus.StreamState{Created: made, First: 10, Last: 9}, false},
		"received and not settled":       {[]uint64{8, 9}, bus.StreamState{Created: made, First: 8, Last: 9}, bus.StreamState{Created: made, First: 8, Last: 9}, false},
		"purged before it came":          {nil, bus.StreamState{Created: made, First: 8, Last: 9}, bus.StreamState{Created: made, First: 10, Last: 9}, true},
		"purged after others":            {[]uint64{8}, bus.StreamState{Created: made, First: 8, Last: 9}, bus.StreamState{Created: made, First: 10, Last: 9}, true},
		"settled by an earlier leader":   {[]uint64{3}, bus.StreamState{Created: made, First: 8, Last: 7}, bus.StreamState{Created: made, First: 8, Last: 7}, false},
		"made again":                     {[]uint64{8}, bus.StreamState{Created: made, First: 9, Last: 8}, bus.StreamState{Created: again}, true},
		"made again, with a new message": {nil, bus.StreamState{Created: made, First: 9, Last: 8}, bus.StreamState{Created: again, First: 1, Last: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen answersSeen
			for _, sequence := range c.received {
				seen.receive(sequence)
			}
			if seen.look(c.first) {
				t.Error("the first look finds something lost")
			}
			if got := seen.look(c.second); got != c.want {
				t.Errorf("something is lost: %v, want %v", got, c.want)
			}
			if seen.look(c.second) {
				t.Error("the same is lost once more")
			}
		})
	}
}

// TestAStreamMadeAgainHasItsOwnSequences: what was received of the one before counts no more.
func TestAStreamMadeAgainHasItsOwnSequences(t *testing.T) {
	t.Parallel()
	made, again := time.Unix(1000, 0), time.Unix(2000, 0)
	var seen answersSeen
	seen.receive(50)
	seen.look(bus.StreamState{Created: made, First: 51, Last: 50})
	seen.look(bus.StreamState{Created: again})
	if seen.receive(1); seen.look(bus.StreamState{Created: again, First: 2, Last: 1}) {
		t.Error("an answer that was received counts as lost")
	}
	if !seen.look(bus.StreamState{Created: again, First: 3, Last: 2}) {
		t.Error("a lost answer is not noticed")
	}
}

// TestChecksAreRepeatedSlowly: all that is open, a part with each tick, and again after a while.
func TestChecksAreRepeatedSlowly(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var open []string
	for i := range 2*checksAtOnce + 1 {
		open = append(open, fmt.Sprint(i))
	}
	var r checkRound
	round := func() (parts []int, all []string) {
		for {
			part := r.next(now, func() []string { return open })
			if len(part) == 0 {
				return parts, all
			}
			parts, all = append(parts, len(part)), append(all, part...)
		}
	}
	for range 2 {
		parts, all := round()
		if !slices.Equal(parts, []int{checksAtOnce, checksAtOnce, 1}) || !slices.Equal(all, open) {
			t.Errorf("a round has parts of %v, and in all %d of %d", parts, len(all), len(open))
		}
		now = now.Add(checksAgain - time.Second)
		if parts, _ := round(); len(parts) > 0 {
			t.Errorf("a second before it is due there is a round of %v", parts)
		}
		now = now.Add(time.Second)
	}
}
