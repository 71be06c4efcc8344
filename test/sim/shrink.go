package sim

import (
	"slices"
	"time"
)

// Shrink searches for the shortest script with which the options' run still breaks the
// same promise, trying no longer than the given time.
func Shrink(o Options, failed Result, within time.Duration) Result {
	deadline := time.Now().Add(within)
	best := failed
	fails := func(s Script) bool {
		if time.Now().After(deadline) {
			return false
		}
		o.Script = &s
		r := Run(o)
		if r.Breach == nil || r.Breach.Promise != failed.Breach.Promise {
			return false
		}
		best = r // what it says happened may be less than what it was told
		return true
	}
	if s := failed.Script; !fails(s) {
		return failed // what was drawn and what was told come to the same only if nothing else is random
	}
	for before := -1; before != size(best.Script); {
		before = size(best.Script)
		for step := max(1, before/2); ; step /= 2 {
			for i := 0; i < size(best.Script); {
				if !fails(without(best.Script, i, step)) {
					i += step
				}
			}
			if step == 1 {
				break
			}
		}
	}
	return best
}

func size(s Script) int { return len(s.Calls) + len(s.Timed) }

// without leaves a number of faults out, from one on: first those of calls, then those
// of the world.
func without(s Script, from, count int) Script {
	calls, timed := slices.Clone(s.Calls), slices.Clone(s.Timed)
	a, b := min(from, len(calls)), min(from+count, len(calls))
	c, d := min(max(0, from-len(calls)), len(timed)), min(max(0, from+count-len(calls)), len(timed))
	return Script{Calls: slices.Delete(calls, a, b), Timed: slices.Delete(timed, c, d)}
}

// Kept is a story that broke a promise once and is a test since.
type Kept struct {
	Seed   uint64 `json:"seed"`
	Broke  string `json:"broke"` // as it was
	Script Script `json:"script"`
}
