package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
)

// market is a tree of a queue "mine" in the cohort "team" of the cohort "root", with a queue beside
// each of them, and what each of these has and uses of each flavor.
type market struct {
	nominal, used map[string][]int64 // by name; cohorts use nothing of their own
}

// below lists who is in a part of the tree: the queue, its cohort, or the root.
func (m market) below() [][]string {
	return [][]string{{"mine"}, {"mine", "beside", "team"}, {"mine", "beside", "team", "outside", "root"}}
}

// offered is how the queue could have the amount of a flavor: whether it needs evictions, and from
// how far up the tree the quota comes, as Kueue's documentation of flavorFungibility has it.
func (m market) offered(flavor int, amount int64) (possible, evicts bool, level int) {
	parts := m.below()
	sums := func(part []string) (nominal, used int64) {
		for _, name := range part {
			nominal += m.nominal[name][flavor]
			used += m.used[name][flavor]
		}
		return nominal, used
	}
	nominal, used := sums(parts[len(parts)-1])
	possible, evicts = amount <= nominal, amount > nominal-used
	for level = range parts {
		if nominal, used := sums(parts[level]); nominal-used >= amount {
			return possible, evicts, level
		}
	}
	return possible, evicts, level
}

// chosen is the flavor that Kueue chooses: the first at which its search stops, else the best.
func (m market) chosen(amount int64, borrowStops, preemptStops, nearerFirst bool) (best int, name string) {
	best, name = -1, ""
	var rank [2]int
	for flavor := range m.nominal["mine"] {
		possible, evicts, level := m.offered(flavor, amount)
		if !possible {
			continue
		}
		if (level == 0 || borrowStops) && (!evicts || preemptStops) {
			return flavor, fmt.Sprintf("f%d, where the search stops", flavor)
		}
		mine := [2]int{0, level}
		if evicts {
			mine[0] = 1
		}
		if nearerFirst {
			mine[0], mine[1] = mine[1], mine[0]
		}
		if best < 0 || mine[0] < rank[0] || mine[0] == rank[0] && mine[1] < rank[1] {
			best, rank, name = flavor, mine, fmt.Sprintf("f%d, the best", flavor)
		}
	}
	return best, name
}

// TestFlavorsAreChosenAsKueueDoes: the flavor that is tried first is the one at which Kueue's search
// ends, or else the best: so none is evicted for where the next one has room, unless the queue says
// so, and of two alike the one from nearer by is taken.
func TestFlavorsAreChosenAsKueueDoes(t *testing.T) {
	t.Parallel()
	later := 0
	check := func(t *rapid.T) {
		names := []string{"mine", "beside", "team", "outside", "root"}
		flavors := rapid.IntRange(2, 4).Draw(t, "flavors")
		m := market{map[string][]int64{}, map[string][]int64{}}
		for _, name := range names {
			for range flavors {
				m.nominal[name] = append(m.nominal[name], rapid.Int64Range(0, 4).Draw(t, "nominal of "+name))
			}
			m.used[name] = make([]int64, flavors)
		}
		one := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
		borrow, preempt := one("whenCanBorrow", "MayStopSearch", "TryNextFlavor"), one("whenCanPreempt", "MayStopSearch", "TryNextFlavor")
		preference := ""
		if borrow == "TryNextFlavor" && preempt == "TryNextFlavor" { // else it means nothing
			preference = one("preference", "", "BorrowingOverPreemption", "PreemptionOverBorrowing")
		}
		tree := m.tree(t, fmt.Sprintf(`, "flavorFungibility": {"whenCanBorrow": %q, "whenCanPreempt": %q, "preference": %q}`, borrow, preempt, preference))
		for range rapid.IntRange(0, 8).Draw(t, "gangs") {
			name, flavor, n := one("who uses", "mine", "beside", "outside"), rapid.IntRange(0, flavors-1).Draw(t, "flavor"), rapid.Int64Range(1, 4).Draw(t, "amount")
			if charges := gpus(fmt.Sprint("f", flavor), n); tree.Queue(name).Fits(charges) {
				tree.Queue(name).Allocate(charges)
				m.used[name][flavor] += n
			}
		}
		amount := rapid.IntRange(1, 6).Draw(t, "asked")
		want, why := m.chosen(int64(amount), borrow == "MayStopSearch", preempt == "MayStopSearch", preference == "BorrowingOverPreemption")
		assignments, _, refused := tree.Queue("mine").Assignments(gpuSet(amount, 1))
		if refused != nil {
			t.Fatal(refused.Message)
		}
		first := tree.Queue("mine").Assess(assignments)[0]
		got := first.Flavors[0].Flavors["nvidia.com/gpu"]
		if (first.Mode == quota.Impossible) != (want < 0) || want >= 0 && got != fmt.Sprint("f", want) {
			t.Fatalf("%d are to be of %s (%+v), want %s; quota %v, used %v", amount, got, first, why, m.nominal, m.used)
		}
		if want > 0 {
			later++
		}
	}
	for rounds := 0; rounds < 40 && later == 0; rounds++ {
		rapid.Check(t, check)
	}
	if later == 0 {
		t.Error("the first flavor was always chosen")
	}
}

// tree makes the market; more are further fields of the queue "mine".
func (m market) tree(t *rapid.T, more string) *quota.Tree {
	groups := func(name string) string {
		var list []string
		for flavor, n := range m.nominal[name] {
			list = append(list, fmt.Sprintf(`{"name": "f%d", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}`, flavor, n))
		}
		return `"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [` + strings.Join(list, ", ") + `]}]`
	}
	var flavors, queues []string
	for flavor := range m.nominal["mine"] {
		flavors = append(flavors, fmt.Sprintf(`{"name": "f%d"}`, flavor))
	}
	for i, name := range []string{"mine", "beside", "outside"} {
		fields, cohort := "", []string{"team", "team", "root"}[i]
		if i == 0 {
			fields = more
		}
		queues = append(queues, fmt.Sprintf(`{"name": %q, "cohortName": %q, "quotaCheckStrategy": "IgnoreUndeclared", %s%s}`, name, cohort, groups(name), fields))
	}
	return drawnTree(t, fmt.Sprintf(`{"resourceFlavors": [%s], "cohorts": [{"name": "team", "parentName": "root", %s}, {"name": "root", %s}], "clusterQueues": [%s]}`,
		strings.Join(flavors, ", "), groups("team"), groups("root"), strings.Join(queues, ", ")))
}
