package output

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Demand lists what waiting gangs lack, a line for equal ones of a ClusterQueue.
func Demand(d workload.Demand, format Format, now time.Time) Table {
	t := Table{Header: []string{"CLUSTERQUEUE", "GANGS", "NODES ASKED", "WAITING", "PODS OF ONE GANG"}}
	if format == Wide {
		t.Header = append(t.Header, "REASON")
	}
	for _, shape := range d.Shapes {
		var sets []string
		for _, set := range shape.PodSets {
			of := ""
			if names := slices.Compact(slices.Sorted(maps.Values(set.Flavors))); len(names) > 0 {
				of = " of " + strings.Join(names, "+")
			}
			sets = append(sets, fmt.Sprintf("%d %s (%s)%s", set.Pods, set.Name, set.Requests, of))
		}
		asked := "no"
		if shape.Asked {
			asked = "yes"
		}
		row := []string{shape.ClusterQueue, strconv.Itoa(shape.Gangs), asked, dash(age(shape.Since, now)), strings.Join(sets, ", ")}
		if format == Wide {
			row = append(row, shape.Reason)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
