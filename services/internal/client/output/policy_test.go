package output_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

func TestPolicyTables(t *testing.T) {
	t.Parallel()
	gpus := func(nominal, used, borrowed int64) []quota.Line {
		return []quota.Line{{FlavorResource: quota.FlavorResource{Flavor: "f", Resource: "nvidia.com/gpu"}, Nominal: nominal, Used: used, Borrowed: borrowed}}
	}
	lends := gpus(8, 1, 0)
	lends[0].Lent = 3
	for name, c := range map[string]struct {
		table output.Table
		want  string
	}{
		"cohorts": {output.Cohorts(
			[]quota.CohortUsage{{Name: "company", Quota: gpus(14, 10, 0)}, {Name: "research", Parent: "company", Quota: gpus(6, 9, 3), Share: 214_285}, {Name: "zoo"}},
			query.ClusterQueuesOf(nil, []query.Queue{
				{Name: "night", ClusterQueue: "night", Cohort: "research", Quota: gpus(4, 9, 5), Share: 357_142},
				{Name: "product", ClusterQueue: "product", Cohort: "company", Quota: lends, Share: quota.MaxShare},
				{Name: "alone", ClusterQueue: "alone"},
			})), `COHORT       KIND           SHARE      QUOTA USED
company      Cohort         -          nvidia.com/gpu 10/14
  product    ClusterQueue   weight 0   nvidia.com/gpu 1/8 (3 lent)
  research   Cohort         21.4 %     nvidia.com/gpu 9/6 (3 borrowed)
    night    ClusterQueue   35.7 %     nvidia.com/gpu 9/4 (5 borrowed)
zoo          Cohort         -          -
`},
		"flavors": {output.Flavors([]quota.Flavor{
			{Name: "spot", NodeLabels: map[string]string{"gpu": "h100", "a": "b"}, NodeTaints: []capacity.Taint{{Key: "spot", Value: "yes", Effect: "NoSchedule"}, {Key: "x", Effect: "NoExecute"}}, Tolerations: []workload.Toleration{{Key: "spot", Operator: "Exists"}}},
			{Name: "any"},
		}), `NAME   NODE LABELS    NODE TAINTS                       TOLERATIONS
spot   a=b,gpu=h100   spot=yes:NoSchedule,x:NoExecute   spot
any    -              -                                 -
`},
		"priority classes": {output.PriorityClasses([]quota.PriorityClass{{Name: "low", Value: -5}, {Name: "urgent", Value: 1000}, {Name: "also", Value: -5}}), `NAME     VALUE
urgent   1000
low      -5
also     -5
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var table strings.Builder
			if err := c.table.Write(&table, ""); err != nil {
				t.Fatal(err)
			}
			if table.String() != c.want {
				t.Errorf("the table is\n%s\nwant\n%s", table.String(), c.want)
			}
		})
	}
}
