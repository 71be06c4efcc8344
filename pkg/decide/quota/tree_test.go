package quota_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
)

// configOf reads a configuration as people write it.
func configOf(t testing.TB, text string) quota.Config {
	t.Helper()
	var c quota.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func treeOf(t testing.TB, text string) *quota.Tree {
	t.Helper()
	tree, err := quota.New(configOf(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// cpuQueue is a ClusterQueue with quota of CPU of the flavor "default"; limits are
// further fields of the quota, such as `"borrowingLimit": "2"`.
func cpuQueue(name, cohort, nominal, limits string) string {
	if limits != "" {
		limits = ", " + limits
	}
	return fmt.Sprintf(`{"name": %q, "cohortName": %q, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
		{"name": "default", "resources": [{"name": "cpu", "nominalQuota": %q%s}]}]}]}`, name, cohort, nominal, limits)
}

func cpuCohort(name, parent, nominal, limits string) string {
	groups := ""
	if nominal != "" {
		if limits != "" {
			limits = ", " + limits
		}
		groups = fmt.Sprintf(`, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
			{"name": "default", "resources": [{"name": "cpu", "nominalQuota": %q%s}]}]}]`, nominal, limits)
	}
	return fmt.Sprintf(`{"name": %q, "parentName": %q%s}`, name, parent, groups)
}

func policy(cohorts []string, queues ...string) string {
	join := func(list []string) string {
		text := ""
		for i, item := range list {
			if i > 0 {
				text += ", "
			}
			text += item
		}
		return text
	}
	return fmt.Sprintf(`{"resourceFlavors": [{"name": "default"}], "cohorts": [%s], "clusterQueues": [%s]}`, join(cohorts), join(queues))
}

// cpus charges that number of CPUs of the flavor "default".
func cpus(n int64) []quota.Charge {
	return []quota.Charge{{FlavorResource: quota.FlavorResource{Flavor: "default", Resource: "cpu"}, Amount: n * 1000}}
}

// most returns how many CPUs the queue may use more.
func most(q *quota.Queue) int64 {
	n := int64(0)
	for q.Fits(cpus(n + 1)) {
		n++
	}
	return n
}

// The examples are those of Kueue's documentation on ClusterQueues and Cohorts.
func TestWhatAQueueMayUse(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		policy string
		used   map[string]int64
		want   map[string]int64 // CPUs that each queue may use more
	}{
		{"alone: its nominal quota", policy(nil, cpuQueue("a", "", "9", "")), map[string]int64{"a": 4}, map[string]int64{"a": 5}},
		{
			"a cohort lends what is unused", policy(nil, cpuQueue("a", "team", "9", ""), cpuQueue("b", "team", "12", "")),
			map[string]int64{"b": 10}, map[string]int64{"a": 11, "b": 11},
		},
		{
			"up to the borrowing limit", policy(nil, cpuQueue("a", "team", "9", `"borrowingLimit": "1"`), cpuQueue("b", "team", "12", "")),
			nil, map[string]int64{"a": 10, "b": 21},
		},
		{
			"a borrowing limit of zero", policy(nil, cpuQueue("a", "team", "9", `"borrowingLimit": "0"`), cpuQueue("b", "team", "12", "")),
			map[string]int64{"a": 9}, map[string]int64{"a": 0, "b": 12},
		},
		{
			"a lending limit keeps the rest for the queue itself", policy(nil, cpuQueue("a", "team", "9", ""), cpuQueue("b", "team", "12", `"lendingLimit": "1"`)),
			nil, map[string]int64{"a": 10, "b": 21},
		},
		{
			"what is kept is used first", policy(nil, cpuQueue("a", "team", "9", ""), cpuQueue("b", "team", "12", `"lendingLimit": "1"`)),
			map[string]int64{"b": 11}, map[string]int64{"a": 10, "b": 10},
		},
		{
			"the borrower keeps the lender from its own", policy(nil, cpuQueue("a", "team", "9", ""), cpuQueue("b", "team", "12", "")),
			map[string]int64{"a": 15}, map[string]int64{"a": 6, "b": 6},
		},
		{
			"quota of the cohort is for all", policy([]string{cpuCohort("team", "", "5", "")}, cpuQueue("a", "team", "1", ""), cpuQueue("b", "team", "2", "")),
			nil, map[string]int64{"a": 8, "b": 8},
		},
		{
			"trees lend across cohorts", policy([]string{cpuCohort("left", "root", "", ""), cpuCohort("right", "root", "", "")},
				cpuQueue("a", "left", "3", ""), cpuQueue("b", "right", "4", "")),
			map[string]int64{"b": 1}, map[string]int64{"a": 6, "b": 6},
		},
		{
			"a cohort's borrowing limit bounds all below", policy([]string{cpuCohort("left", "root", "0", `"borrowingLimit": "2"`), cpuCohort("right", "root", "", "")},
				cpuQueue("a", "left", "3", ""), cpuQueue("b", "left", "1", ""), cpuQueue("c", "right", "9", "")),
			map[string]int64{"a": 4}, map[string]int64{"a": 2, "b": 2, "c": 9},
		},
		{
			"a cohort's lending limit", policy([]string{cpuCohort("left", "root", "4", `"lendingLimit": "1"`), cpuCohort("right", "root", "", "")},
				cpuQueue("a", "left", "0", ""), cpuQueue("c", "right", "2", "")),
			nil, map[string]int64{"a": 6, "c": 3},
		},
		{
			"other trees do not lend", policy(nil, cpuQueue("a", "one", "3", ""), cpuQueue("b", "two", "9", "")),
			nil, map[string]int64{"a": 3, "b": 9},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree := treeOf(t, c.policy)
			for name, n := range c.used {
				tree.Queue(name).Allocate(cpus(n))
			}
			got := map[string]int64{}
			for name := range c.want {
				got[name] = most(tree.Queue(name))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("CPUs that may be used more (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsMissingIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, policy(nil, cpuQueue("a", "team", "9", `"borrowingLimit": "1"`), cpuQueue("b", "team", "12", "")))
	tree.Queue("a").Allocate(cpus(4))
	over := tree.Queue("a").Over(cpus(7))
	if over == nil || over.Limit != "borrowingLimit" || over.Where != "clusterQueue a" || over.Available != 6000 || over.Potential != 10000 {
		t.Errorf("over the borrowing limit: %+v", over)
	}
	tree.Queue("b").Allocate(cpus(17))
	over = tree.Queue("a").Over(cpus(6))
	if over == nil || over.Limit != "nominalQuota" || over.Where != "cohort team" || over.Available != 0 {
		t.Errorf("over what the cohort has: %+v", over)
	}
	want := `insufficient unused quota for cpu in flavor "default" of queue "a": requested 6, available 0, 6 more needed (nominal quota 9, used 4; limited by nominalQuota of cohort team)`
	if got := over.Reason().Message; got != want {
		t.Errorf("the sentence is\n%s\nwant\n%s", got, want)
	}
	tree.Queue("b").Allocate(cpus(3)) // three more than the cohort has
	want = "requested 6, available 0, 9 more needed"
	if got := tree.Queue("a").Over(cpus(6)).Reason().Message; !strings.Contains(got, want) {
		t.Errorf("above quota the sentence is\n%s\nwant %q in it", got, want)
	}
}

// Whatever is used and freed, in whatever order: usage in the tree is a function
// of what the queues use, a what-if leaves no trace, and within quota no queue can use
// more than all have.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) string { return fmt.Sprint(rapid.IntRange(0, 9).Draw(t, name)) }
		limits := func(nominal string) string {
			switch rapid.IntRange(0, 3).Draw(t, "limit") {
			case 0:
				return fmt.Sprintf(`"borrowingLimit": %q`, number("borrowing"))
			case 1:
				return fmt.Sprintf(`"lendingLimit": %q`, fmt.Sprint(rapid.IntRange(0, int(nominal[0]-'0')).Draw(t, "lending")))
			}
			return ""
		}
		cohorts := []string{cpuCohort("root", "", number("root"), "")}
		for _, name := range []string{"left", "right"} {
			nominal := number(name)
			cohorts = append(cohorts, cpuCohort(name, "root", nominal, limits(nominal)))
		}
		var queues []string
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			nominal := number(name)
			queues = append(queues, cpuQueue(name, rapid.SampledFrom([]string{"root", "left", "right"}).Draw(t, "cohort"), nominal, limits(nominal)))
		}
		var c quota.Config
		if err := json.Unmarshal([]byte(policy(cohorts, queues...)), &c); err != nil {
			t.Fatal(err)
		}
		tree, err := quota.New(c)
		if err != nil {
			t.Fatal(err)
		}
		fresh, _ := quota.New(c)
		used := map[string]int64{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name, n := rapid.SampledFrom(names).Draw(t, "queue"), rapid.Int64Range(1, 5).Draw(t, "cpus")
			before := lines(tree)
			savepoint := tree.Begin()
			tree.Queue(name).Allocate(cpus(n))
			tree.Rollback(savepoint)
			if diff := cmp.Diff(before, lines(tree)); diff != "" {
				t.Fatalf("a what-if left a trace:\n%s", diff)
			}
			switch {
			case rapid.Bool().Draw(t, "free") && used[name] >= n:
				tree.Queue(name).Release(cpus(n))
				used[name] -= n
			case tree.Queue(name).Fits(cpus(n)):
				tree.Queue(name).Allocate(cpus(n))
				used[name] += n
			}
		}
		for name, n := range used {
			fresh.Queue(name).Allocate(cpus(n))
		}
		if diff := cmp.Diff(lines(fresh), lines(tree)); diff != "" {
			t.Fatalf("usage depends on the order of use (-at once +step by step):\n%s", diff)
		}
		sum, all := int64(0), int64(0)
		for _, q := range c.ClusterQueues {
			sum, all = sum+used[q.Name], all+q.ResourceGroups[0].Flavors[0].Resources[0].Nominal/1000
		}
		for _, co := range c.Cohorts {
			all += co.ResourceGroups[0].Flavors[0].Resources[0].Nominal / 1000
		}
		if sum > all {
			t.Fatalf("%d CPUs are used of %d", sum, all)
		}
	})
}

func lines(tree *quota.Tree) map[string][]quota.Line {
	all := map[string][]quota.Line{}
	for _, q := range tree.Queues() {
		all[q.Name] = q.Lines()
	}
	return all
}
