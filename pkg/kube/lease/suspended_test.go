package lease

import (
	"testing"
	"time"
)

// TestTheTimeOfASuspendedMachineCounts: a machine that is suspended goes on as if no time had
// passed, and others have waited for the lease to end meanwhile.
func TestTheTimeOfASuspendedMachineCounts(t *testing.T) {
	t.Parallel()
	boot := 10 * time.Second
	w := &witness{sinceBoot: func() time.Duration { return boot }}
	w.sent = w.now()
	boot += time.Minute
	if held := w.held(); held < time.Minute {
		t.Errorf("after a minute in suspension it is held for %s", held)
	}
	w.sent = w.now()
	if held := w.held(); held >= time.Minute {
		t.Errorf("at once it is held for %s", held)
	}
}
