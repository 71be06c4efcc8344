package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// threeFlavors is a queue with ten GPUs of each of the flavors a, b and c, at these prices.
func threeFlavors(t *testing.T, a, b, c, fungibility string) *quota.Tree {
	t.Helper()
	flavor := func(name, price string) string {
		return fmt.Sprintf(`{"name": %q, "costPerHour": {"nvidia.com/gpu": %q}}`, name, price)
	}
	quotaOf := func(name string) string {
		return fmt.Sprintf(`{"name": %q, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 10}]}`, name)
	}
	return treeOf(t, fmt.Sprintf(`{"resourceFlavors": [%s, %s, %s], "clusterQueues": [
		{"name": "mine", "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared", "flavorFungibility": {%s}, "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [%s, %s, %s]}]},
		{"name": "theirs", "cohortName": "all", "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [%s, %s, %s]}]}]}`,
		flavor("a", a), flavor("b", b), flavor("c", c), fungibility, quotaOf("a"), quotaOf("b"), quotaOf("c"), quotaOf("a"), quotaOf("b"), quotaOf("c")))
}

func TestOfEqualFlavorsTheCheapestIsTriedFirst(t *testing.T) {
	t.Parallel()
	const lowest = `"whenEqual": "LowestCost"`
	for name, c := range map[string]struct {
		a, b, c, fungibility string
		mine                 []quota.Charge
		want                 string
	}{
		"as listed by default":         {"3", "2", "1", ``, nil, "a b c"},
		"as listed by name":            {"3", "2", "1", `"whenEqual": "FirstListed"`, nil, "a b c"},
		"the cheapest":                 {"3", "2", "1", lowest, nil, "c b a"},
		"of one price as listed":       {"2", "1", "1", lowest, nil, "b c a"},
		"not before one that is alike": {"3", "2", "1", lowest + `, "whenCanBorrow": "TryNextFlavor"`, gpus("c", 9), "b a c+"},
		// Kueue ends its search at the flavor that borrows. The two others change places.
		"borrowing keeps its place": {"3", "2", "1", lowest, gpus("b", 9), "c b+ a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := threeFlavors(t, c.a, c.b, c.c, c.fungibility)
			tree.Queue("mine").Allocate(c.mine)
			if got := order(t, tree.Queue("mine"), 2); got != c.want {
				t.Errorf("flavors are tried as %q, want %q", got, c.want)
			}
		})
	}
}

// TestTheCostOfAFlavorIsThatOfAllItsResources: flavors of two groups, of which one has cheap
// GPUs with dear cores.
func TestTheCostOfAFlavorIsThatOfAllItsResources(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, `{"resourceFlavors": [{"name": "dear-cores", "costPerHour": {"nvidia.com/gpu": 1, "cpu": "0.5"}}, {"name": "cheap", "costPerHour": {"nvidia.com/gpu": 2, "memory": "0.001"}}],
		"clusterQueues": [{"name": "q", "flavorFungibility": {"whenEqual": "LowestCost"}, "resourceGroups": [{"coveredResources": ["nvidia.com/gpu", "cpu", "memory"], "flavors": [
			{"name": "dear-cores", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}, {"name": "cpu", "nominalQuota": 80}, {"name": "memory", "nominalQuota": "1Ti"}]},
			{"name": "cheap", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}, {"name": "cpu", "nominalQuota": 80}, {"name": "memory", "nominalQuota": "1Ti"}]}]}]}]}`)
	for cores, want := range map[int64]string{1: "dear-cores", 4: "cheap"} {
		t.Run(fmt.Sprintf("%d cores", cores), func(t *testing.T) {
			sets := []workload.PodSet{{Name: "workers", Count: 3, Template: workload.Template{
				Requests: resource.List{"nvidia.com/gpu": 1, "cpu": cores * 1000, "memory": 8 << 30},
			}}}
			all, _, why := tree.Queue("q").Assignments(sets)
			if why != nil {
				t.Fatal(why)
			}
			if got := tree.Queue("q").Assess(all)[0].Flavors[0].Flavors["nvidia.com/gpu"]; got != want {
				t.Errorf("with %d cores %s is tried first, want %s", cores, got, want)
			}
		})
	}
}

func TestPricesOfAFlavorAreChecked(t *testing.T) {
	t.Parallel()
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`"example.com/r%d": 1`, i)
	}
	for name, c := range map[string]struct{ config, want string }{
		"negative":     {`{"resourceFlavors": [{"name": "a", "costPerHour": {"cpu": -1}}]}`, "want a price from 0 to 1000000"},
		"no price":     {`{"resourceFlavors": [{"name": "a", "costPerHour": {"cpu": "dear"}}]}`, "want a price from 0 to 1000000"},
		"too many":     {`{"resourceFlavors": [{"name": "a", "costPerHour": {` + strings.Join(many, ",") + `}}]}`, "resourceFlavors[0].costPerHour: has 101 prices; want at most 100"},
		"another rule": {`{"clusterQueues": [{"name": "q", "flavorFungibility": {"whenEqual": "Dearest"}}]}`, `flavorFungibility.whenEqual: "Dearest": want one of FirstListed, LowestCost`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := refusalOf(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s is refused with %v, want %s", c.config, err, c.want)
			}
		})
	}
}
