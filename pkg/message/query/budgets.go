package query

import (
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// Budget is a budget of a queue with what was used of it.
type Budget struct {
	quota.Budget
	// UsedHours since the beginning of the period, as far as it is summed: until Upto, which is
	// zero where nothing was summed yet.
	UsedHours float64   `json:"usedHours"`
	Upto      time.Time `json:"upto,omitzero"`
	// Until is when the period ends.
	Until time.Time `json:"until"`
	// Holds: it is used up, and holds the queue.
	Holds bool `json:"holds,omitempty"`
}

// UsedUp reports whether nothing is left of it.
func (b *Budget) UsedUp() bool { return !b.Upto.IsZero() && b.UsedHours >= float64(b.Hours) }

// Message returns how much was used, and until when.
func (b *Budget) Message() string {
	hold := b.Stop(int64(b.UsedHours), b.Upto, b.Until)
	return hold.Message()
}
