package admission

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// plannedStart returns the start of the head as data.
func (r *headReservation) plannedStart() *workload.PlannedStart {
	return &workload.PlannedStart{
		Workload: r.head.Workload.ID, By: r.start, After: idsOf(r.after), Cluster: r.cluster, Nodes: nodesOf(r.places),
	}
}

func nodesOf(places []workload.Placement) []string {
	var nodes []string
	for _, p := range places {
		nodes = append(nodes, p.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// startText describes for a reader when the head starts.
func (r *headReservation) startText(reader *workload.Workload) string {
	if r.start.IsZero() {
		return fmt.Sprintf("starts when %s; the time is unknown, because not all run times are declared", ending(reader, r.after))
	}
	if len(r.after) == 0 { // others hold the nodes reserved until then
		return fmt.Sprintf("starts by %s at the latest", r.start.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return fmt.Sprintf("starts by %s at the latest, when %s", r.start.UTC().Format("2006-01-02 15:04:05 MST"), ending(reader, r.after))
}

// foreignIDs returns the workloads of other queues in the plan for the head.
func (r *headReservation) foreignIDs(reader *workload.Workload) []workload.ID {
	return foreign(reader, append(workloadsOf(r.after), r.head.Workload)...)
}

// reasonBehindHead returns why a workload waits that would delay the head.
func (r *headReservation) reasonBehindHead(w *Waiting) *workload.Reason {
	where := "the head of another queue"
	if w.Workload.Queue == r.head.Workload.Queue {
		where = fmt.Sprintf("the head of queue %q (%s)", r.head.queue.name, r.head.queue.strategy())
	}
	return &workload.Reason{
		Kind:    workload.ReasonBehindHead,
		Message: fmt.Sprintf("the workload fits, but would delay %s, %s. The head %s", nameFor(w.Workload, r.head.Workload), where, r.startText(w.Workload)),
		Start:   r.plannedStart(), Foreign: r.foreignIDs(w.Workload),
	}
}

// reasonOfHead adds the reservation to the reason of its head.
func (r *headReservation) reasonOfHead(why *workload.Reason) *workload.Reason {
	with := *why
	with.Message += fmt.Sprintf(". Places on %d nodes of cluster %s are reserved for it. It %s", len(nodesOf(r.places)), r.cluster, r.startText(r.head.Workload))
	if r.head != r.head.queue.head() {
		with.Message += ", if those before it in line start as planned"
	}
	with.Start, with.Foreign = r.plannedStart(), r.foreignIDs(r.head.Workload)
	return &with
}
