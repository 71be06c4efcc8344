package lease

import (
	"testing"
	"time"
)

// TestTheTimeOfASuspendedMachineCounts: a machine that is suspended goes on as if no time had
// passed, and others have waited for the lease to end meanwhile.
func TestTheTimeOfASuspendedMachineCounts(t *testing.T) {
	boot := 10 * time.Second
	before := sinceBoot
	sinceBoot = func() time.Duration { return boot }
	t.Cleanup(func() { sinceBoot = before })
	w := &witness{sent: time.Now(), sentBoot: boot}
	if held := w.held(); held > time.Second {
		t.Errorf("at once it is held for %s", held)
	}
	boot += time.Minute
	if held := w.held(); held < time.Minute {
		t.Errorf("after a minute in suspension it is held for %s", held)
	}
}
