package lease

import (
	"errors"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
)

// TestTheTimeOfASuspendedMachineCounts: a machine that is suspended goes on as if no time had
// passed, and others have waited for the lease to end meanwhile. It must not act until a renewal is
// confirmed.
func TestTheTimeOfASuspendedMachineCounts(t *testing.T) {
	t.Parallel()
	boot := 10 * time.Second
	e := &election{Options: Options{Duration: 4 * time.Second}, past: &past{}, sinceBoot: func() time.Duration { return boot }}
	e.confirm(&coordination.Lease{}, e.now())
	if err := e.check(); err != nil {
		t.Errorf("after a renewal: %v", err)
	}
	boot += time.Minute
	if held, err := e.held(), e.check(); held < time.Minute || !errors.Is(err, ErrLost) {
		t.Errorf("after a minute in suspension it is held for %s, and may act: %v", held, err)
	}
	e.confirm(&coordination.Lease{}, e.now())
	if held, err := e.held(), e.check(); held >= time.Minute || err != nil {
		t.Errorf("at once it is held for %s, and may act: %v", held, err)
	}
}
