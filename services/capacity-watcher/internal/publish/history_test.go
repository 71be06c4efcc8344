package publish_test

import (
	"math"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

// TestAForgedSession: the next session is later than a forged one that readers
// accept, and ignores one that is too far ahead to be accepted.
func TestAForgedSession(t *testing.T) {
	t.Parallel()
	stored := time.Unix(1_800_000_000, 0)
	heard := stored.Add(20 * time.Hour).UnixNano()
	var values []bus.Delivery
	for node, session := range map[string]int64{"true": stored.UnixNano(), "heard": heard, "last": math.MaxInt64, "far": stored.Add(48 * time.Hour).UnixNano()} {
		t.Run(node, func(t *testing.T) {
			encoded, err := event.Marshal(node, "test", stored, "", &event.NodeRemoved{Cluster: "c", Node: node, Version: event.Version{Session: session}})
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, bus.Delivery{Subject: event.NodeSubject("c", node), Data: encoded, Stored: stored})
		})
	}
	if got := publish.HistoryOf(values, zap.NewNop()).Session; got != heard {
		t.Errorf("the last session is %d, want %d", got, heard)
	}
}
