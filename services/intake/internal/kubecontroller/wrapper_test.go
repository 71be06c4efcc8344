package kubecontroller

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAChangeOfTheTTLOnlyShortensIt: the submitted TTL, which was checked against the
// queue's limit, bounds every later value.
func TestAChangeOfTheTTLOnlyShortensIt(t *testing.T) {
	t.Parallel()
	submitted := func(ttl time.Duration) *workload.Record {
		return &workload.Record{Workload: workload.Workload{Life: workload.Life{Tolerance: &workload.Tolerance{SuccessTTL: workload.Duration(ttl)}}}}
	}
	hour, minute := time.Hour, time.Minute
	for name, c := range map[string]struct {
		written *time.Duration
		record  *workload.Record
		want    time.Duration // 0: for ever
	}{
		"as submitted":      {&minute, submitted(time.Minute), time.Minute},
		"longer":            {&hour, submitted(time.Minute), time.Minute},
		"shorter":           {&minute, submitted(time.Hour), time.Minute},
		"removed":           {nil, submitted(time.Minute), 0},
		"none submitted":    {&hour, &workload.Record{}, time.Hour},
		"nothing is known":  {&hour, nil, time.Hour},
		"nothing was asked": {&hour, submitted(0), time.Hour},
	} {
		var got time.Duration
		if ttl := successTTL(appwrapper.Wrapper{SuccessTTL: c.written}, c.record); ttl != nil {
			got = *ttl
		}
		if got != c.want {
			t.Errorf("%s: it successTTL %s, want %s", name, got, c.want)
		}
	}
}
