package publish_test

import (
	"math"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

// TestASessionThatWasMadeUp: of what a thief of the key has published, the next session
// outdoes what is heard, and leaves alone what lies too far ahead to be.
func TestASessionThatWasMadeUp(t *testing.T) {
	t.Parallel()
	stored := time.Unix(1_800_000_000, 0)
	heard := stored.Add(20 * time.Hour).UnixNano()
	var values []bus.Delivery
	for node, session := range map[string]int64{"true": stored.UnixNano(), "heard": heard, "last": math.MaxInt64, "far": stored.Add(48 * time.Hour).UnixNano()} {
		encoded, err := event.Marshal(node, "test", stored, "", &event.NodeRemoved{Cluster: "c", Node: node, Version: event.Version{Session: session}})
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, bus.Delivery{Subject: bus.NodeSubject("c", node), Data: encoded, Stored: stored})
	}
	if got := publish.HistoryOf(values, zap.NewNop()).Session; got != heard {
		t.Errorf("the last session is %d, want %d", got, heard)
	}
}
