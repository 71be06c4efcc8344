package chaos

import (
	"fmt"
	"testing"

	"muster.dev/muster/test/suite"
)

// Lanes share the faults: each fault is in one of them.
func TestLanes(t *testing.T) {
	t.Parallel()
	all := suite.Trials(apiAway)
	in := map[string]int{}
	const lanes = 3
	for i := range lanes {
		its, err := ofLane(fmt.Sprintf("%d/%d", i+1, lanes), all)
		if err != nil || len(its) < len(all)/lanes {
			t.Errorf("lane %d has %d of %d faults, %v", i+1, len(its), len(all), err)
		}
		for _, trial := range its {
			in[trial.String()]++
		}
	}
	for _, trial := range all {
		if in[trial.String()] != 1 {
			t.Errorf("%s is in %d lanes", trial, in[trial.String()])
		}
	}
	for _, lane := range []string{"", "0/2", "3/2", "x"} {
		if _, err := ofLane(lane, all); err == nil {
			t.Errorf("lane %q is accepted", lane)
		}
	}
}
