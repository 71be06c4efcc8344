package rules_test

import (
	"math"
	"testing"
	"time"

	"muster.dev/muster/pkg/kube/lease/rules"
)

// TestAForgedEpoch: a forged epoch from the far future does not raise the next
// epoch; one that a wrong clock explains does.
func TestAForgedEpoch(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	present, hour := now.UnixNano(), int64(time.Hour)
	for name, c := range map[string]struct{ last, known, want int64 }{
		"nothing known":            {0, 0, present},
		"a clock was set back":     {present + hour, 0, present + hour + 1},
		"a clock was days ahead":   {present + 48*hour, 0, present},
		"a Lease was deleted":      {0, present + hour, present + hour + 1},
		"the last epoch of all":    {0, math.MaxInt64, present},
		"nearly the last":          {0, math.MaxInt64 - 5, present},
		"made up beside the Lease": {present - hour, present + 48*hour, present},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rules.NextEpoch(now, c.last, c.known); got != c.want {
				t.Errorf("%s: epoch %d, want %d", name, got, c.want)
			}
		})
	}
}
