package event

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// The beginnings of the reasons in the events of refused requests. They are no reasons to
// wait: a workload waits for what it waited for before. Clients look for them.
const (
	NotMoved    = "not moved: "
	NotHeld     = "not held: "
	NotResumed  = "not resumed: "
	NotRequeued = "not requeued: "
	NotRanked   = "priority not changed: "
	NotSaved    = "checkpoint not noted: "
)

var refusals = []string{NotMoved, NotHeld, NotResumed, NotRequeued, NotRanked, NotSaved}

// IsRefusal reports whether a reason is that a request was refused.
func IsRefusal(r *workload.Reason) bool {
	return r != nil && slices.ContainsFunc(refusals, func(begins string) bool { return strings.HasPrefix(r.Message, begins) })
}
