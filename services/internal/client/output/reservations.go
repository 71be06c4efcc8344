package output

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// mostNamed bounds the nodes of a reservation that a table names.
const mostNamed = 3

// Reservations is the table of reservations of nodes.
func Reservations(all []quota.Reservation, now time.Time) Table {
	t := Table{Header: []string{"NAME", "STATE", "FOR", "FROM", "UNTIL", "CLUSTER", "NODES", "EVICTS", "BY", "WHY"}}
	for _, r := range all {
		state, evicts := "active", "no"
		switch {
		case now.Before(r.From):
			state = "planned"
		case !now.Before(r.Until):
			state = "over"
		}
		if r.Evict {
			evicts = "yes"
		}
		t.Rows = append(t.Rows, []string{
			r.Name, state, Cell(r.Purpose()), r.From.UTC().Format(time.RFC3339), r.Until.UTC().Format(time.RFC3339),
			dash(r.Cluster), reservedNodes(&r), evicts, Cell(r.By), dash(Cell(r.Why)),
		})
	}
	return t
}

func reservedNodes(r *quota.Reservation) string {
	if len(r.Nodes) > mostNamed {
		return Cell(fmt.Sprintf("%s and %d more", strings.Join(r.Nodes[:mostNamed], ","), len(r.Nodes)-mostNamed))
	}
	names := slices.Clone(r.Nodes)
	for _, key := range slices.Sorted(maps.Keys(r.NodeLabels)) {
		names = append(names, key+"="+r.NodeLabels[key])
	}
	return Cell(strings.Join(names, ","))
}
