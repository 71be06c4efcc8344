package store

import (
	"maps"
	"testing"

	"muster.dev/muster/pkg/state"
)

// TestHowManyAreReadForPositions: of a name that leads to several ClusterQueues more are read,
// and of names that lead to none that is asked for nothing is.
func TestHowManyAreReadForPositions(t *testing.T) {
	t.Parallel()
	led := leading{}
	for place, clusterQueue := range map[[2]string]string{
		{"team-a", "user-queue"}: "a", {"team-b", "user-queue"}: "b", {"team-b", "batch"}: "b", {"team-c", "other"}: "c",
	} {
		led[state.LocalQueueKey{Namespace: place[0], Queue: place[1]}] = clusterQueue
	}
	for name, c := range map[string]struct {
		wanted string
		want   map[string]int
	}{
		"of one name":          {"a", map[string]int{"a": positionsCounted, "user-queue": positionsShared}},
		"of two names":         {"b", map[string]int{"b": positionsCounted, "user-queue": positionsShared, "batch": positionsCounted}},
		"without a LocalQueue": {"research", map[string]int{"research": positionsCounted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := led.names(map[string]bool{c.wanted: true}); !maps.Equal(got, c.want) {
				t.Errorf("of %s are read %v, want %v", c.wanted, got, c.want)
			}
		})
	}
}
