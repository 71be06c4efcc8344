// Package resource has effects, a clock and an import against the order.
package resource

import (
	"os"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Amount takes the time as a value, as it may, and reads the clock, as it may not.
func Amount(at time.Time) workload.Workload {
	os.Clearenv()
	_ = at.Sub(time.Now())
	return workload.Workload{}
}
