package quota_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
)

func TestFaultsHaveWhatWhereAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	const flavored = `{"resourceFlavors": [{"name": "f"}], "clusterQueues": [{"name": "a", "resourceGroups": [`
	cases := []struct{ policy, want string }{
		{`{"clusterQueues": [{"name": "a", "queueingStrategy": "Random"}]}`, `clusterQueues[0].queueingStrategy: "Random": want one of BestEffortFIFO, StrictFIFO, Backfill`},
		{`{"clusterQueues": [{"name": "a"}, {"name": "a"}]}`, `clusterQueues[1].name: "a" is a duplicate of clusterQueues[0]; want another name`},
		{`{"cohorts": [{}]}`, `cohorts[0].name: is missing`},
		{`{"resourceFlavors": [{"name": "f", "nodeTaints": [{"key": "a", "effect": "No"}]}]}`, `resourceFlavors[0].nodeTaints[0].effect: "No": want one of NoSchedule, PreferNoSchedule, NoExecute`},
		{`{"resourceFlavors": [{"name": "f", "nodeTaints": [{"key": "a"}]}]}`, `resourceFlavors[0].nodeTaints[0].effect: "": want one of NoSchedule, PreferNoSchedule, NoExecute`},
		{`{"resourceFlavors": [{"name": "f", "tolerations": [{"key": "a", "operator": "Is"}]}]}`, `resourceFlavors[0].tolerations[0].operator: "Is": want one of Exists, Equal`},
		{policy(nil, cpuQueue("a", "", "9", `"borrowingLimit": 1`)), `clusterQueues[0].resourceGroups[0].flavors[0].resources[0].borrowingLimit: needs a cohort: set cohortName, or leave it out`},
		{policy(nil, cpuQueue("a", "team", "9", `"lendingLimit": "10"`)), `clusterQueues[0].resourceGroups[0].flavors[0].resources[0].lendingLimit: 10 is more than the nominalQuota 9; want at most that`},
		{
			policy([]string{cpuCohort("x", "y", "", ""), cpuCohort("y", "x", "", "")}),
			`cohorts[0].parentName: "y": the parents of cohort "x" lead back to it; want a tree, without a cycle` + "\n" +
				`cohorts[1].parentName: "x": the parents of cohort "y" lead back to it; want a tree, without a cycle`,
		},
		{`{"localQueues": [{"namespace": "n", "name": "l", "clusterQueue": "none"}]}`, `localQueues[0].clusterQueue: "none": there is no clusterQueue of this name, nor any other`},
		{
			`{"clusterQueues": [{"name": "a"}], "localQueues": [{"namespace": "n", "name": "l", "clusterQueue": "a"}, {"namespace": "n", "name": "l", "clusterQueue": "a", "stopPolicy": "Stop"}]}`,
			`localQueues[1].name: "l" is a duplicate in namespace "n"` + "\n" + `localQueues[1].stopPolicy: "Stop": want one of None, Hold, HoldAndDrain`,
		},
		{`{"workloadPriorityClasses": [{"name": ""}]}`, `workloadPriorityClasses[0].name: is missing`},
		{`{"fairSharing": {"preemptionStrategies": ["Fair"]}}`, `fairSharing.preemptionStrategies[0]: "Fair": want one of LessThanOrEqualToFinalShare, LessThanInitialShare`},
		{`{"fairSharing": {"usageHalfLifeSeconds": -1}}`, `fairSharing.usageHalfLifeSeconds: -1 is negative; want zero or more`},
		{`{"clusterQueues": [{"name": "a", "preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}]}`, `clusterQueues[0].preemption.borrowWithinCohort: needs reclaimWithinCohort LowerPriority or Any; it is Never`},
		{
			`{"clusterQueues": [{"name": "a", "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "preference": "Nearest"}}]}`,
			`clusterQueues[0].flavorFungibility.preference: "Nearest": want one of BorrowingOverPreemption, PreemptionOverBorrowing`,
		},
		{
			`{"clusterQueues": [{"name": "a", "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch", "preference": "BorrowingOverPreemption"}}]}`,
			`clusterQueues[0].flavorFungibility.preference: "BorrowingOverPreemption" is for whenCanBorrow TryNextFlavor and whenCanPreempt TryNextFlavor; want both, or no preference`,
		},
		{`{"clusterQueues": [{"name": "a", "preemption": {"minRunSeconds": -5}}]}`, `clusterQueues[0].preemption.minRunSeconds: -5 is negative; want zero or more`},
		{`{"clusterQueues": [{"name": "a", "queueingStrategy": "StrictFIFO", "backfill": {}}]}`, `clusterQueues[0].backfill: is for queueingStrategy Backfill or BestEffortFIFO, and that of this queue is "StrictFIFO"`},
		{`{"clusterQueues": [{"name": "a", "backfill": {"order": "Fast"}}]}`, `clusterQueues[0].backfill.order: is for queueingStrategy Backfill, and that of this queue is "BestEffortFIFO"` + "\n" + `clusterQueues[0].backfill.order: "Fast": want one of Submission, ShortestBackfill, ShortestFirst`},
		{
			`{"clusterQueues": [{"name": "a", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "gold", "resources": []}]}]}]}`,
			`clusterQueues[0].resourceGroups[0].flavors[0].name: "gold": there is no resourceFlavor of this name, nor any other` + "\n" +
				`clusterQueues[0].resourceGroups[0].flavors[0].resources: has no quota for "cpu"; want one for each of the coveredResources: cpu`,
		},
		{flavored + `{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}]}]}]}]}`, `clusterQueues[0].resourceGroups[0].flavors[0].resources: has no quota for "memory"; want one for each of the coveredResources: cpu, memory`},
		{flavored + `{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}, {"name": "gpu", "nominalQuota": 1}]}]}]}]}`, `clusterQueues[0].resourceGroups[0].flavors[0].resources[1].name: "gpu": want each of the coveredResources once: cpu`},
		{flavored + `{"coveredResources": [], "flavors": []}]}]}`, `clusterQueues[0].resourceGroups[0].coveredResources: is empty; want at least one resource, such as nvidia.com/gpu` + "\n" + `clusterQueues[0].resourceGroups[0].flavors: 0 of them; want 1 to 64`},
	}
	for _, c := range cases {
		place, _, _ := strings.Cut(c.want, ":")
		t.Run(place, func(t *testing.T) {
			_, err := quota.New(configOf(t, c.policy))
			if err == nil || err.Error() != c.want {
				t.Errorf("%s\nis refused with\n%v\nwant\n%s", c.policy, err, c.want)
			}
		})
	}
}

func TestAmountsThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{`"-1"`, `"ten"`, `"1e99999"`, `"9E"`, `null`, `true`, `"99999999999Ei"`} {
		t.Run(amount, func(t *testing.T) {
			var q quota.ResourceQuota
			if err := json.Unmarshal([]byte(`{"name": "cpu", "nominalQuota": `+amount+`}`), &q); err == nil {
				t.Errorf("nominalQuota %s is taken as %d", amount, q.Nominal)
			}
		})
	}
	var q quota.ResourceQuota
	if err := json.Unmarshal([]byte(`{"name": "cpu", "nominalQuota": 1, "borowingLimit": 1}`), &q); err == nil {
		t.Error("a misspelt field is taken")
	}
}

func TestConfigurationsSurviveJSON(t *testing.T) {
	t.Parallel()
	want := configOf(t, policy([]string{cpuCohort("root", "", "1500m", "")},
		cpuQueue("a", "root", "2.5", `"borrowingLimit": "100m", "lendingLimit": 1`),
		`{"name": "b", "fairSharing": {"weight": "0.5"}, "preemption": {"withinClusterQueue": "LowerPriority", "minRunSeconds": 60}}`))
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, configOf(t, string(encoded))); diff != "" {
		t.Errorf("after JSON (-before +after):\n%s", diff)
	}
}

// FuzzConfig reads any JSON: what is taken can be used.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(policy([]string{cpuCohort("root", "", "1500m", "")}, cpuQueue("a", "root", "2.5", `"lendingLimit": 1`))))
	f.Add([]byte(`{"clusterQueues": [{"name": "a", "fairSharing": {"weight": "1e3"}}], "fairSharing": {"enable": true, "usageHalfLifeSeconds": 60}}`))
	f.Add([]byte(`{"clusters": [{"name": "a", "labels": {"gpu": "h100"}, "costPerHour": {"nvidia.com/gpu": "2.5", "memory": 1e3}}], "clusterCordons": [{"name": "a", "since": "2026-11-21T12:00:00Z", "by": "ann"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c quota.Config
		if json.Unmarshal(data, &c) != nil {
			return
		}
		tree, err := quota.New(c)
		if err != nil {
			return
		}
		for _, q := range tree.Queues() {
			q.Allocate(cpus(1))
			q.Share()
			q.Over(cpus(1))
			q.Release(cpus(1))
		}
	})
}

func TestPastUsageHalvesWithTheHalfLife(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, `{"fairSharing": {"enable": true, "usageHalfLifeSeconds": 60}, "clusterQueues": [{"name": "a", "cohortName": "all"}]}`)
	q, now := tree.Queue("a"), time.Unix(1000, 0)
	charge := []quota.Charge{{FlavorResource: quota.FlavorResource{Resource: "nvidia.com/gpu"}, Amount: 1_000_000}}
	tree.Advance(now)
	q.Allocate(charge)
	tree.Settle()
	near := func(what string, want float64) {
		t.Helper()
		got := q.Past().Used["nvidia.com/gpu"]
		if math.Abs(got-want) > want/1e6 {
			t.Errorf("%s the past use is %f, want %f", what, got, want)
		}
	}
	tree.Advance(now.Add(60 * time.Second))
	near("after one half-life of use", 500_000)
	tree.Advance(now.Add(120 * time.Second))
	near("after two", 750_000)
	q.Release(charge)
	tree.Settle()
	tree.Advance(now.Add(150 * time.Second))
	near("half a half-life after its end", 530_330.0858899)
	tree.Advance(now.Add(24 * time.Hour))
	near("a day later", 0)
	q.SetHistory(quota.History{At: now, Used: map[resource.Name]float64{"nvidia.com/gpu": 7}})
	if got := q.Past().Used["nvidia.com/gpu"]; got != 7 {
		t.Errorf("the past use that was given is %f", got)
	}
}
