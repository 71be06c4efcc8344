package quota_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
)

// A cohort has the sum of what is below it, a parent comes before its children, and a
// cohort that is only named is there, too.
func TestCohorts(t *testing.T) {
	t.Parallel()
	var c quota.Config
	if err := json.Unmarshal([]byte(`{
		"resourceFlavors": [{"name": "f"}],
		"cohorts": [{"name": "research", "parentName": "company", "resourceGroups": [
			{"coveredResources": ["gpu"], "flavors": [{"name": "f", "resources": [{"name": "gpu", "nominalQuota": 2, "borrowingLimit": 5}]}]}]}],
		"clusterQueues": [
			{"name": "night", "cohortName": "research", "resourceGroups": [
				{"coveredResources": ["gpu"], "flavors": [{"name": "f", "resources": [{"name": "gpu", "nominalQuota": 4}]}]}]},
			{"name": "day", "cohortName": "research"},
			{"name": "product", "cohortName": "company", "resourceGroups": [
				{"coveredResources": ["gpu"], "flavors": [{"name": "f", "resources": [{"name": "gpu", "nominalQuota": 8}]}]}]},
			{"name": "alone"}, {"name": "empty", "cohortName": "zoo"}]}`), &c); err != nil {
		t.Fatal(err)
	}
	tree, err := quota.New(c)
	if err != nil {
		t.Fatal(err)
	}
	gpu := quota.FlavorResource{Flavor: "f", Resource: "gpu"}
	tree.Queue("night").Allocate([]quota.Charge{{FlavorResource: gpu, Amount: 9}})
	tree.Queue("product").Allocate([]quota.Charge{{FlavorResource: gpu, Amount: 1}})
	five := int64(5)
	want := []quota.CohortUsage{
		{Name: "company", Quota: []quota.Line{{FlavorResource: gpu, Nominal: 14, Used: 10, Available: 4}}},
		{Name: "research", Parent: "company", Quota: []quota.Line{{FlavorResource: gpu, Nominal: 6, Used: 9, Borrowed: 3, BorrowingLimit: &five, Available: 2}}, Share: 214_285},
		{Name: "zoo"},
	}
	if diff := cmp.Diff(want, tree.Cohorts()); diff != "" {
		t.Errorf("cohorts (-want +got):\n%s", diff)
	}
}
