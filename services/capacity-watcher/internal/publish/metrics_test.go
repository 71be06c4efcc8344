package publish

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/testkit/alerttest"
)

// TestCountersOfAlerts: the counters of alerts have their series before they count.
func TestCountersOfAlerts(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	NewMetrics(registry)
	if missing, err := alerttest.Missing(registry); err != nil || len(missing) > 0 {
		t.Errorf("without series: %v, %v", missing, err)
	}
}
