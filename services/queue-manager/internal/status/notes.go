package status

import (
	"fmt"

	"muster.dev/muster/pkg/message/query"
)

// notes lists what keeps work waiting without a fault of Muster: it may be meant so, or be
// forgotten.
func notes(a query.StatusAnswer) []string {
	var found []string
	for _, c := range a.Clusters {
		if away := c.Nodes - c.ReadyNodes; c.ReadyNodes > 0 && away > 0 {
			found = append(found, fmt.Sprintf("not ready in cluster %s: %d of %s; see `muster get nodes`", c.Name, away, counted(c.Nodes, "node")))
		}
	}
	for _, c := range a.Clusters {
		if c.Cordon != nil {
			found = append(found, fmt.Sprintf("%s; `muster cluster uncordon %s` ends that", c.Cordon.Message(), c.Name))
		}
	}
	if n := len(a.Held); n > 0 {
		found = append(found, "held, stopped or inactive: "+counted(n, "queue")+"; see the line Held")
	}
	if n := a.HeldWorkloads; n > 0 {
		found = append(found, counted(n, "workload")+" on hold: `muster resume workload NAME` ends a hold")
	}
	if n := a.TrustedPlaces.InAll; n > 0 {
		found = append(found, "misplaced pods in queues whose scheduler places them: "+counted(n, "workload"))
	}
	return found
}
