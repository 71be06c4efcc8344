package state

import (
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// removals are the attempts that the ledger does not know and whose objects are being
// removed.
type removals struct {
	// removing are the waiting workloads of which such an attempt is removed, unknown
	// what is removed and has no workload.
	removing map[workload.ID]bool
	unknown  map[gangKey]*event.GangCommand
	// used are the attempts in the streams of workloads that the ledger does
	// not know: a workload of the same ID that is submitted later begins after them.
	used map[workload.ID]int
}

func (r *removals) trackUnknown(c *event.GangCommand) {
	if r.unknown == nil {
		r.unknown = map[gangKey]*event.GangCommand{}
	}
	r.unknown[gangKey{c.Cluster, c.Workload}] = c
}

// noteUsed remembers the attempts of a workload that the ledger does not know.
func (r *removals) noteUsed(published workload.Record) {
	last := published.Attempt
	if published.Phase == workload.Queued && !published.Holding {
		last-- // it waited for this one
	}
	if r.used == nil {
		r.used = map[workload.ID]int{}
	}
	r.used[published.ID] = max(r.used[published.ID], last)
}

func (l *lifecycle) removal(e *entry) *event.GangCommand {
	command := l.command(e, event.Absent)
	command.Attempt = e.Attempt - 1
	return command
}

// isRemoved reports whether a waiting workload waits for the removal of an attempt
// that the ledger did not know.
func isRemoved(e *entry) bool {
	return e.Phase == workload.Queued && e.Cluster != "" && e.Reason != nil && e.Reason.Kind == workload.ReasonRestored
}
