package quota_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
)

// TestWhatIsLent: what is borrowed is lent by those that have something unused, in proportion to
// it and to the last unit.
func TestWhatIsLent(t *testing.T) {
	t.Parallel()
	gpu := quota.FlavorResource{Flavor: "f", Resource: "gpu"}
	queue := func(name, cohort string, nominal int, more string) string {
		return fmt.Sprintf(`{"name": %q, "cohortName": %q, "resourceGroups": [{"coveredResources": ["gpu"], "flavors": [{"name": "f", "resources": [{"name": "gpu", "nominalQuota": %d%s}]}]}]}`, name, cohort, nominal, more)
	}
	for name, c := range map[string]struct {
		queues  []string
		cohorts string
		used    map[string]int64
		want    map[string]int64 // of queues and cohorts; none where it is zero
	}{
		"nothing is borrowed":    {[]string{queue("a", "all", 4, ""), queue("b", "all", 4, "")}, "", map[string]int64{"a": 4}, nil},
		"of one":                 {[]string{queue("a", "all", 4, ""), queue("b", "all", 4, "")}, "", map[string]int64{"a": 7}, map[string]int64{"b": 3}},
		"of one that uses some":  {[]string{queue("a", "all", 4, ""), queue("b", "all", 4, "")}, "", map[string]int64{"a": 6, "b": 2}, map[string]int64{"b": 2}},
		"in proportion":          {[]string{queue("a", "all", 0, ""), queue("b", "all", 6, ""), queue("c", "all", 3, "")}, "", map[string]int64{"a": 3}, map[string]int64{"b": 2, "c": 1}},
		"to the last unit":       {[]string{queue("a", "all", 0, ""), queue("b", "all", 1, ""), queue("c", "all", 1, ""), queue("d", "all", 1, "")}, "", map[string]int64{"a": 1}, map[string]int64{"d": 1}},
		"not what it keeps":      {[]string{queue("a", "all", 0, ""), queue("b", "all", 6, `, "lendingLimit": 2`), queue("c", "all", 2, "")}, "", map[string]int64{"a": 2}, map[string]int64{"b": 1, "c": 1}},
		"the cohort has its own": {[]string{queue("a", "all", 0, ""), queue("b", "all", 2, "")}, strings.Replace(queue("all", "", 2, ""), `"cohortName": "", `, "", 1), map[string]int64{"a": 2}, map[string]int64{"b": 1}},
		"to another cohort": {
			[]string{queue("a", "left", 0, ""), queue("b", "left", 2, ""), queue("c", "right", 4, "")},
			`{"name": "left", "parentName": "top"}, {"name": "right", "parentName": "top"}`,
			map[string]int64{"a": 4}, map[string]int64{"b": 2, "c": 2, "right": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var config quota.Config
			if err := json.Unmarshal([]byte(`{"resourceFlavors": [{"name": "f"}], "cohorts": [`+c.cohorts+`], "clusterQueues": [`+strings.Join(c.queues, ",")+`]}`), &config); err != nil {
				t.Fatal(err)
			}
			tree, err := quota.New(config)
			if err != nil {
				t.Fatal(err)
			}
			for of, amount := range c.used {
				tree.Queue(of).Allocate([]quota.Charge{{FlavorResource: gpu, Amount: amount}})
			}
			got := map[string]int64{}
			note := func(name string, lines []quota.Line) {
				for _, l := range lines {
					if l.Lent != 0 {
						got[name] = l.Lent
					}
				}
			}
			for _, q := range config.ClusterQueues {
				note(q.Name, tree.Queue(q.Name).Lines())
			}
			for _, cohort := range tree.Cohorts() {
				note(cohort.Name, cohort.Quota)
			}
			if diff := cmp.Diff(c.want, got); diff != "" && len(c.want)+len(got) > 0 {
				t.Errorf("lent (-want +got):\n%s", diff)
			}
		})
	}
}
