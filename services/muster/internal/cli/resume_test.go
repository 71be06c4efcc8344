package cli

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// A workload that waits because its queue is held is not held itself: the answer says what holds it.
func TestResumeReportsWhatHoldsTheQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold *workload.Hold
		why  *workload.Reason
		want string
	}{
		"held":             {&workload.Hold{}, &workload.Reason{Kind: workload.ReasonHeld, Message: "on hold"}, ""},
		"waits":            {nil, &workload.Reason{Kind: workload.ReasonQuota, Message: "no quota"}, "is not held"},
		"without a reason": {nil, nil, "is not held"},
		"queue is held":    {nil, &workload.Reason{Kind: workload.ReasonHeld, Message: `queue "q" is on hold`}, `is not held by itself; queue "q" is on hold`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&requestOptions{}).resume().made(&workload.Record{Hold: c.hold, Reason: c.why}, time.Time{}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
