package quota_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// twoFlavors is a cohort of two queues with GPUs of the flavors "a100" and
// "h100"; fields are further ones of the queue "mine".
func twoFlavors(t testing.TB, fields string) *quota.Tree {
	queue := func(name, fields string) string {
		return fmt.Sprintf(`{"name": %q, "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared"%s, "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [
			{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}]},
			{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}]}]}]}`, name, fields)
	}
	return treeOf(t, fmt.Sprintf(`{"resourceFlavors": [{"name": "a100", "nodeLabels": {"gpu": "a100"}},
		{"name": "h100", "nodeLabels": {"gpu": "h100"}, "nodeTaints": [{"key": "dear", "effect": "NoSchedule"}], "tolerations": [{"key": "dear", "operator": "Exists"}]}],
		"clusterQueues": [%s, %s]}`, queue("mine", fields), queue("theirs", "")))
}

func gpuSet(pods int, each int64) []workload.PodSet {
	return []workload.PodSet{{Name: "workers", Count: pods, Template: workload.Template{
		Requests: resource.List{"nvidia.com/gpu": each, "cpu": 1000, "pods": 1},
	}}}
}

func gpus(flavor string, n int64) []quota.Charge {
	return []quota.Charge{{FlavorResource: quota.FlavorResource{Flavor: flavor, Resource: "nvidia.com/gpu"}, Amount: n}}
}

// order returns the flavors of the GPUs in the order in which they are tried,
// with + for borrowing and ! for preempting.
func order(t *testing.T, q *quota.Queue, pods int) string {
	t.Helper()
	all, cut, why := q.Assignments(gpuSet(pods, 1))
	if why != nil || cut {
		t.Fatalf("no assignments: %v", why)
	}
	var tried []string
	for _, a := range q.Assess(all) {
		text := a.Flavors[0].Flavors["nvidia.com/gpu"]
		if a.Level > 0 {
			text += "+"
		}
		if a.Mode != quota.Within {
			text += "!"
		}
		tried = append(tried, text)
	}
	return strings.Join(tried, " ")
}

func TestTheOrderOfFlavorsIsTheQueuesFungibility(t *testing.T) {
	t.Parallel()
	fungibility := func(borrow, preempt string) string {
		return fmt.Sprintf(`, "flavorFungibility": {"whenCanBorrow": %q, "whenCanPreempt": %q}`, borrow, preempt)
	}
	cases := []struct {
		name, fields string
		mine, theirs []quota.Charge
		want         string
	}{
		{"as listed", "", nil, nil, "a100 h100"},
		{"borrowing stops the search by default", "", gpus("a100", 3), nil, "a100+ h100"},
		{"Borrow is the older word for it", fungibility("Borrow", ""), gpus("a100", 3), nil, "a100+ h100"},
		{"the next flavor before borrowing", fungibility("TryNextFlavor", ""), gpus("a100", 3), nil, "h100 a100+"},
		{"the next flavor before preemption by default", "", gpus("a100", 3), gpus("a100", 5), "h100 a100+!"},
		{"preemption stops the search", fungibility("", "Preempt"), gpus("a100", 3), gpus("a100", 5), "a100+! h100"},
		{"preemption before another flavor, but not if it borrows", fungibility("TryNextFlavor", "MayStopSearch"), nil, gpus("a100", 7), "a100! h100"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree := twoFlavors(t, c.fields)
			tree.Queue("mine").Allocate(c.mine)
			tree.Queue("theirs").Allocate(c.theirs)
			if got := order(t, tree.Queue("mine"), 2); got != c.want {
				t.Errorf("flavors are tried as %q, want %q", got, c.want)
			}
		})
	}
}

func TestAFlavorNarrowsWhereItsPodsMayGo(t *testing.T) {
	t.Parallel()
	tree := twoFlavors(t, "")
	sets := gpuSet(2, 1)
	sets[0].Template.NodeSelector = map[string]string{"zone": "a"}
	all, _, _ := tree.Queue("mine").Assignments(sets)
	template := tree.Effective(sets, all[1].Flavors)[0].Template
	if diff := cmp.Diff(map[string]string{"zone": "a", "gpu": "h100"}, template.NodeSelector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if len(template.Tolerations) != 1 || template.Tolerations[0].Key != "dear" {
		t.Errorf("tolerations are %+v, want the flavor's", template.Tolerations)
	}
	if len(sets[0].Template.Tolerations) != 0 || len(sets[0].Template.NodeSelector) != 1 {
		t.Errorf("the pod sets themselves changed: %+v", sets[0].Template)
	}
	want := []quota.Charge{{FlavorResource: quota.FlavorResource{Resource: "cpu"}, Amount: 2000}, gpus("h100", 2)[0]}
	if diff := cmp.Diff(want, all[1].Charges); diff != "" {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
}

func TestAFlavorThatDoesNotMatchIsPassedOver(t *testing.T) {
	t.Parallel()
	tree := twoFlavors(t, "")
	sets := gpuSet(1, 1)
	sets[0].Template.NodeSelector = map[string]string{"gpu": "h100"}
	all, _, why := tree.Queue("mine").Assignments(sets)
	if why != nil || len(all) != 1 || all[0].Flavors[0].Flavors["nvidia.com/gpu"] != "h100" {
		t.Errorf("assignments are %+v (%v), want h100 alone", all, why)
	}
	sets[0].Template.NodeSelector["gpu"] = "v100"
	if _, _, why := tree.Queue("mine").Assignments(sets); why == nil || why.Kind != workload.ReasonQuota || !strings.Contains(why.Message, `flavor "a100" (node selector does not match), flavor "h100" (node selector does not match)`) {
		t.Errorf("the reason is %+v", why)
	}
}

func TestUndeclaredResourcesAreBlockedUnlessIgnored(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, policy(nil, cpuQueue("a", "", "9", "")))
	_, _, why := tree.Queue("a").Assignments(gpuSet(1, 1))
	if why == nil || why.Quota.Resource != "nvidia.com/gpu" || why.Quota.Limit != "coveredResources" {
		t.Errorf("GPUs without quota: %+v", why)
	}
	if got := len(treeOf(t, `{"clusterQueues": [{"name": "free"}]}`).Queue("free").ResourceGroups); got != 0 {
		t.Fatalf("%d resource groups", got)
	}
	if _, _, why := treeOf(t, `{"clusterQueues": [{"name": "free"}]}`).Queue("free").Assignments(gpuSet(1, 1)); why != nil {
		t.Errorf("a queue without quota refuses GPUs: %+v", why)
	}
}

func TestSharesAreWeightedAndDominant(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, `{"resourceFlavors": [{"name": "default"}], "fairSharing": {"enable": true},
		"cohorts": [{"name": "all", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "10"}]}]}]}],
		"clusterQueues": [{"name": "one", "cohortName": "all"}, {"name": "two", "cohortName": "all", "fairSharing": {"weight": "2"}},
			{"name": "none", "cohortName": "all", "fairSharing": {"weight": 0}}]}`)
	// What is not declared by a queue is charged without flavor: measured by what
	// the cohort can lend all the same.
	use := func(name string, n int64) {
		tree.Queue(name).Allocate([]quota.Charge{{FlavorResource: quota.FlavorResource{Resource: "cpu"}, Amount: n * 1000}})
	}
	use("one", 3)
	use("two", 3)
	got := map[string]quota.Share{}
	for _, q := range tree.Queues() {
		got[q.Name] = q.Share()
	}
	if diff := cmp.Diff(map[string]quota.Share{"one": 300_000, "two": 150_000, "none": 0}, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	use("none", 1)
	if got := tree.Queue("none").Share(); got != quota.MaxShare {
		t.Errorf("who borrows with weight zero has the share %d", got)
	}
}

// levels is a tree in which the queue borrows a100 from the root and h100 from its cohort.
func levels(t *testing.T, fields string) *quota.Tree {
	t.Helper()
	group := func(a100, h100 int) string {
		return fmt.Sprintf(`[{"coveredResources": ["nvidia.com/gpu"], "flavors": [
			{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]},
			{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}]}]`, a100, h100)
	}
	return treeOf(t, fmt.Sprintf(`{"resourceFlavors": [{"name": "a100"}, {"name": "h100"}],
		"cohorts": [{"name": "root", "resourceGroups": %s}, {"name": "team", "parentName": "root", "resourceGroups": %s}],
		"clusterQueues": [{"name": "mine", "cohortName": "team", "quotaCheckStrategy": "IgnoreUndeclared", "resourceGroups": %s%s},
			{"name": "outside", "cohortName": "root", "resourceGroups": %s}]}`,
		group(9, 0), group(1, 9), group(1, 1), fields, group(0, 0)))
}

// As Kueue's documentation of FlavorFungibility has it: the level is the distance in the
// tree of cohorts from which quota comes.
func TestTheFlavorFromNearerByComesFirst(t *testing.T) {
	t.Parallel()
	fungibility := func(more string) string {
		return `, "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"` + more + `}`
	}
	cases := []struct {
		name, fields string
		outside      []quota.Charge
		want         string
	}{
		{"borrowing stops the search", "", nil, "a100+ h100+"},
		{"nearer by", fungibility(""), nil, "h100+ a100+"},
		{"within quota before preemption", fungibility(""), gpus("h100", 7), "a100+ h100+!"},
		{"the same by preference", fungibility(`, "preference": "PreemptionOverBorrowing"`), gpus("h100", 7), "a100+ h100+!"},
		{"nearness before preemption", fungibility(`, "preference": "BorrowingOverPreemption"`), gpus("h100", 7), "h100+! a100+"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree := levels(t, c.fields)
			tree.Queue("outside").Allocate(c.outside)
			if got := order(t, tree.Queue("mine"), 4); got != c.want {
				t.Errorf("flavors are tried as %q, want %q", got, c.want)
			}
		})
	}
}
