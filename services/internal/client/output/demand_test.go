package output_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// TestDemand: a line for equal gangs, with the pods of one.
func TestDemand(t *testing.T) {
	t.Parallel()
	d := workload.Demand{Gangs: 4, Pods: 10, Shapes: []workload.DemandedGangs{
		{ClusterQueue: "research", Gangs: 3, Since: now().Add(-time.Hour), Reason: "no node", PodSets: []workload.DemandedPods{
			{Name: "headgroup", Pods: 1, Requests: resource.List{"cpu": 1000}}, {Name: "workers", Pods: 2, Requests: resource.List{"nvidia.com/gpu": 1}},
		}},
		{ClusterQueue: "spot", Gangs: 1, Asked: true, Since: now().Add(-time.Minute), Reason: "asked", PodSets: []workload.DemandedPods{
			{Name: "workers", Pods: 1, Flavors: map[resource.Name]string{"cpu": "spot", "nvidia.com/gpu": "spot"}},
		}},
	}}
	for format, want := range map[output.Format]string{
		output.Text: `CLUSTERQUEUE   GANGS   NODES ASKED   WAITING   PODS OF ONE GANG
research       3       no            60m       1 headgroup (cpu 1), 2 workers (nvidia.com/gpu 1)
spot           1       yes           60s       1 workers (nothing) of spot
`,
		output.Wide: `CLUSTERQUEUE   GANGS   NODES ASKED   WAITING   PODS OF ONE GANG                                    REASON
research       3       no            60m       1 headgroup (cpu 1), 2 workers (nvidia.com/gpu 1)   no node
spot           1       yes           60s       1 workers (nothing) of spot                         asked
`,
	} {
		t.Run(string(format), func(t *testing.T) {
			var table strings.Builder
			if err := output.Demand(d, format, now()).Write(&table, ""); err != nil {
				t.Fatal(err)
			}
			if table.String() != want {
				t.Errorf("the table is\n%s\nwant\n%s", table.String(), want)
			}
		})
	}
}
