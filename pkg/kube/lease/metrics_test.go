package lease

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/testkit/alerttest"
)

// TestCountersOfAlerts: the counter of an alert has its series before it counts.
func TestCountersOfAlerts(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	FailedTerms(registry)
	if missing, err := alerttest.Missing(registry); err != nil || len(missing) > 0 {
		t.Errorf("without series: %v, %v", missing, err)
	}
}
