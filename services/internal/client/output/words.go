package output

import (
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// The words of the tables and descriptions, for pages that show the same: the console.

// Age is the time since then as people write it; empty for no time.
func Age(then, now time.Time) string { return age(then, now) }

// Starts returns in a cell when a workload will start.
func Starts(r *workload.Record, now time.Time) string { return starts(r, now) }

// Ends says in a cell when places are given back, and by what that is known.
func Ends(e workload.End, now time.Time) string {
	switch {
	case e.By == workload.EndTornDown:
		return "being removed"
	case e.At.IsZero():
		return "unknown"
	case !e.At.After(now):
		return "overdue (" + string(e.By) + ")"
	}
	return within(e.At, now) + " (" + string(e.By) + ")"
}

// Ran is how long all pods of a workload have run, or had run when it ended; empty for one
// that waits.
func Ran(r *workload.Record, now time.Time) string { return ran(r, now) }

// Brief is a reason for a table, with the figures first.
func Brief(r *workload.Reason) string { return brief(r) }

// Requests prints what is asked for, without pod slots.
func Requests(l resource.List) string { return requests(l) }

// AtLeast writes an amount of which there is no less, AtMost one of which there is no more.
func AtLeast(name resource.Name, amount int64) string { return atLeast(name, amount) }

// AtMost is described with AtLeast.
func AtMost(name resource.Name, amount int64) string { return atMost(name, amount) }

// Held returns who or what holds a queue; empty when nothing does.
func Held(q query.Queue, now time.Time) string { return held(q, now) }

// Share prints the share of a queue in its cohort; empty without cohort.
func Share(q query.Queue) string { return share(q) }

// NodeStatus is the condition of a node, and Taints its taints.
func NodeStatus(n query.Node) string { return status(n) }

// Taints lists the taints of a node.
func Taints(n query.Node) string { return taints(n) }

// Leader describes which queue-manager leads.
func Leader(a query.StatusAnswer) string { return leader(a) }

// Postgres describes the state of the database.
func Postgres(p query.PostgresStatus) string { return postgres(p) }

// NATS describes the state of the streams.
func NATS(n query.NATSStatus) string { return nats(n) }

// Way is a command that reaches a Ray workload.
type Way struct{ Caption, Command string }

// Ways lists the commands that reach a Ray workload whose pods exist, or existed when it ended,
// and prints when they work.
func Ways(r *workload.Record) (when string, all []Way) { return waysOf(r) }
