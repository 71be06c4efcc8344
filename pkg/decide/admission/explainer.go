package admission

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

type explainer struct {
	s      *State
	w      *Waiting
	now    time.Time
	enough func() bool
	found  workload.Explanation
	trials int
}

// works tries a change by a decision.
func (e *explainer) works(change func(*State)) bool { return e.try(nil, change) }

// worksWith tries another configuration by a decision.
func (e *explainer) worksWith(config quota.Config) bool { return e.try(&config, nil) }

func (e *explainer) try(config *quota.Config, change func(*State)) bool {
	if e.trials++; e.trials > mostTrials || e.enough() {
		e.found.Partial = true
		return false
	}
	return e.s.wouldAdmit(e.w.Workload.ID, e.now, config, change)
}

func (e *explainer) config() quota.Config { return e.s.tree.Config() }

func (e *explainer) suggest(c workload.Change, format string, args ...any) {
	c.Message = fmt.Sprintf(format, args...)
	e.found.Changes = append(e.found.Changes, c)
}

// least returns the smallest n from 1 to most for which enough holds, given that
// it holds for all larger ones; 0 when it does not hold for most.
func least(most int, enough func(int) bool) int {
	if most < 1 || !enough(most) {
		return 0
	}
	low, high := 1, most
	for low < high {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
