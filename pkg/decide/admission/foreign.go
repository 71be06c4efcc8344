package admission

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// A reason may mention workloads of other tenants. It names those of the reader's own
// queue (Workload.Queue) and only counts the others.

// nameFor returns how a reason of reader mentions another workload.
func nameFor(reader, other *workload.Workload) string {
	if reader.Queue == other.Queue {
		return "workload " + other.Title()
	}
	return "a workload of another queue"
}

// foreign returns the ids of the workloads of other queues.
func foreign(reader *workload.Workload, others ...*workload.Workload) []workload.ID {
	var ids []workload.ID
	for _, other := range others {
		if other.Queue != reader.Queue {
			ids = append(ids, other.ID)
		}
	}
	return ids
}

func workloadsOf(gangs []*Started) []*workload.Workload {
	all := make([]*workload.Workload, len(gangs))
	for i, g := range gangs {
		all[i] = g.Workload
	}
	return all
}

// ending names a few of the gangs that end, the last first.
func ending(reader *workload.Workload, gangs []*Started) string {
	const shown = 3
	var names, rest []string
	more, others := 0, 0
	for _, g := range slices.Backward(gangs) {
		switch {
		case g.Workload.Queue != reader.Queue:
			others++
		case len(names) < shown:
			names = append(names, g.Workload.Title())
		default:
			more++
		}
	}
	if len(names) > 0 {
		rest = append(rest, strings.Join(names, ", "))
	}
	if more > 0 {
		rest = append(rest, fmt.Sprintf("%d more", more))
	}
	switch {
	case others == 1:
		rest = append(rest, "a workload of another queue")
	case others > 1:
		rest = append(rest, fmt.Sprintf("%d workloads of other queues", others))
	}
	switch len(gangs) {
	case 0:
		return "the gangs before it have"
	case 1:
		return rest[0] + " has ended"
	}
	return strings.Join(rest, " and ") + " have ended"
}
