package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
)

// clock is a time that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// take has a caller take a turn for so long; it returns why it may not.
func (c *clock) take(turns *turns, caller string, long time.Duration) error {
	done, err := turns.admit(caller)
	if err == nil {
		c.at = c.at.Add(long)
		done()
	}
	return err
}

// TestAGreedyCallerLeavesTimeToOthers: a caller that asks without pause is refused when it has
// taken its time, with the time until it may go on; another is answered meanwhile, and in the long
// run the greedy one has a quarter of the time.
func TestAGreedyCallerLeavesTimeToOthers(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Unix(1_000_000, 0)}
	turns := newTurns(c.now)
	began, answered := c.at, 0
	for answered < 100 {
		err := c.take(turns, "greedy", 8*time.Second)
		if err == nil {
			answered++
			continue
		}
		var problem *query.ProblemError
		if !errors.As(err, &problem) || !problem.Busy || problem.After < time.Second || !strings.Contains(err.Error(), "try again in "+problem.After.String()) {
			t.Fatalf("after %d answers it is refused with %v", answered, err)
		}
		before := c.at
		if err := c.take(turns, "modest", 0); err != nil {
			t.Fatalf("the other is refused, too: %v", err)
		}
		c.at = before.Add(problem.After)
	}
	if share := float64(answered) * 8 / c.at.Sub(began).Seconds(); share > 0.3 || share < 0.2 {
		t.Errorf("the greedy one has %.2f of the time, want about a quarter", share)
	}
	c.at = c.at.Add(time.Hour)
	if err := c.take(turns, "modest", 0); err != nil || len(turns.taken) != 1 {
		t.Errorf("of callers that have their time back %d are remembered, %v", len(turns.taken)-1, err)
	}
}

// TestTurnsGoAround: the next turn is of the caller that was refused because of another, and is free
// when that does not come for it.
func TestTurnsGoAround(t *testing.T) {
	t.Parallel()
	c := &clock{at: time.Unix(1_000_000, 0)}
	turns := newTurns(c.now)
	ends := map[string]func(){}
	for i, step := range []struct {
		caller string
		ends   bool
		after  time.Duration
		want   bool
	}{
		{"greedy", false, 0, true}, {"greedy", false, 0, false}, {"modest", false, 0, false},
		{"greedy", true, 0, true}, {"greedy", false, 0, false}, {"modest", false, turnKept / 2, true},
		{"greedy", false, 0, false}, {"modest", true, 0, true}, {"modest", false, 0, false},
		{"modest", false, turnKept, true},
	} {
		c.at = c.at.Add(step.after)
		if step.ends {
			ends[step.caller]()
			continue
		}
		done, err := turns.admit(step.caller)
		if (err == nil) != step.want {
			t.Fatalf("step %d: %s gets %v, want a turn: %t", i, step.caller, err, step.want)
		}
		if err == nil {
			ends[step.caller] = done
		}
	}
}
