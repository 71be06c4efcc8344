package app

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/testkit/alerttest"
)

// TestCountersOfAShadowBeginWithZero: an alert sees the first difference.
func TestCountersOfAShadowBeginWithZero(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	newShadowMetrics(registry)
	if missing, err := alerttest.Missing(registry); err != nil || len(missing) > 0 {
		t.Errorf("these counters have no series before they count: %v, %v", missing, err)
	}
}
