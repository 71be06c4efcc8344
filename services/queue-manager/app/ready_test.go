package app_test

import (
	"strings"
	"testing"
	"time"
)

// TestAQueueManagerWhoseTermsFailIsNotReady: while the database refuses each term, the
// process says that it is not ready, and why. Without that it looked ready for ever, because
// it had led once.
func TestAQueueManagerWhoseTermsFailIsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sql("ALTER TABLE outbox RENAME TO outbox_away")
	w.submit(gangOf("gang", "default", 1))
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	deadline := time.After(2 * patience)
	for {
		if why := w.runtime.Health.Ready()["terms"]; why != nil {
			if !strings.Contains(why.Error(), "terms failed one after the other") || !strings.Contains(why.Error(), "outbox") {
				t.Errorf("it is not ready because of %v", why)
			}
			return
		}
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("it is ready, or not ready because of %v", w.runtime.Health.Ready())
		}
	}
}
