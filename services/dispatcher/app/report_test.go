package app

import (
	"fmt"
	"math"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
)

// TestAForgedSession: of what a thief of the key has published, the next epoch
// outdoes what is heard, and leaves alone what lies too far ahead to be.
func TestAForgedSession(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	heard := time.Now().Add(20 * time.Hour).UnixNano()
	for i, session := range []int64{math.MaxInt64, heard, time.Now().Add(48 * time.Hour).UnixNano()} {
		id := workload.ID(fmt.Sprint("w", i))
		envelope, err := event.New(string(id), "test", time.Now(), &event.GangStatus{Workload: id, Cluster: "c", Session: session})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Publish(t.Context(), event.StatusSubject("c", id), envelope); err != nil {
			t.Fatal(err)
		}
	}
	if envelope, err := lastStatuses(t.Context(), b, "c"); err != nil || envelope.session != heard {
		t.Errorf("the last session is %d, %v, want %d", envelope.session, err, heard)
	}
}
