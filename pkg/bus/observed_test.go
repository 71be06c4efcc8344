package bus_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/testkit/bustest"
)

// TestAClusterFillsNoStream: observations that a cluster makes up are purged, by their
// number or by their size, and another cluster's stay.
func TestAClusterFillsNoStream(t *testing.T) {
	t.Parallel()
	limits := bus.ObservedLimits{Bytes: 1 << 20, Subjects: 100}
	for name, made := range map[string]struct {
		stream, subject string
		messages, size  int
	}{
		"many statuses":  {bus.StatusStream, "muster.status.%s.w%d", 300, 10},
		"large statuses": {bus.StatusStream, "muster.status.%s.w%d", 20, 100 << 10},
		"many nodes":     {bus.CapacityStream, "muster.capacity.%s.node.n%d", 300, 10},
		"large nodes":    {bus.CapacityStream, "muster.capacity.%s.node.n%d", 20, 100 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Connect(t)
			put := func(cluster string, messages, size int) {
				t.Helper()
				data := bytes.Repeat([]byte("x"), size)
				for i := range messages {
					if _, err := b.Conn().Request(fmt.Sprintf(made.subject, cluster, i), data, 20*time.Second); err != nil {
						t.Fatal(err)
					}
				}
			}
			put("good", 20, 2000)
			put("bad", made.messages, made.size)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var purged []bus.Cut
			_ = b.KeepObserved(ctx, limits, func(p []bus.Cut, err error) {
				if err != nil {
					t.Error(err)
				}
				purged = p
				cancel()
			})
			if len(purged) != 1 || purged[0].Owner != "bad" || purged[0].Stream != made.stream || purged[0].Messages != uint64(made.messages) {
				t.Errorf("purged: %+v, want the subjects of one cluster", purged)
			}
			left, err := b.Subjects(t.Context(), made.stream, ">")
			if err != nil || len(left) != 20 {
				t.Errorf("%d subjects are left, %v; want the 20 of the other cluster", len(left), err)
			}
		})
	}
}

// TestAllClustersTogetherAreNotPurged: two clusters may have more than one may.
func TestAllClustersTogetherAreNotPurged(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	for i := range 60 {
		for _, cluster := range []string{"one", "two"} {
			if _, err := b.Conn().Request(fmt.Sprintf("muster.status.%s.w%d", cluster, i), []byte("x"), 20*time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	purged, err := bus.BoundObserved(t.Context(), b, bus.StatusStream, bus.ObservedLimits{Bytes: 1 << 20, Subjects: 100})
	if err != nil || len(purged) != 0 {
		t.Errorf("purged: %+v, %v", purged, err)
	}
}
