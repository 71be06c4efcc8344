package quota_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// Of two queues the one comes first that would have the smaller share, however large both are, and
// whatever they used before. Were they equal, the other one would come first.
func TestLargeSharesAreOrdered(t *testing.T) {
	t.Parallel()
	const before = 1 << 40 // what a queue with past use had for an hour
	for name, c := range map[string]struct {
		lent, smaller, larger       int64 // what the cohort lends, and what they ask for
		weightSmaller, weightLarger string
		past                        string // which of them has past use
	}{
		"one unit beyond much":              {1_000_000_000_000_000, 5_000_000_000_000_000, 5_000_000_000_000_001, "1", "1", ""},
		"of nearly nothing":                 {1, 1 << 61, 1 << 62, "1", "1", ""},
		"one unit of nearly nothing":        {1, 1<<62 - 1, 1 << 62, "1", "1", ""},
		"of a small weight":                 {1, 1 << 61, 1 << 62, "1m", "1m", ""},
		"of the smaller weight":             {1, 1 << 62, 1 << 62, "2m", "1m", ""},
		"of a large weight":                 {1 << 40, 1 << 20, 1<<20 + 1, "1000000", "1000000", ""},
		"past use above the bound":          {1, 1 << 62, 1 << 62, "1m", "1m", "larger"},
		"past use of much, beyond no share": {1, 1 << 62, 1 << 20, "1m", "0", "smaller"},
		"past use without a weight":         {1 << 50, 1 << 20, 1 << 20, "0", "0", "larger"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := func(name, weight string) string {
				return fmt.Sprintf(`{"name": %q, "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared", "fairSharing": {"weight": %q}}`, name, weight)
			}
			tree := treeOf(t, fmt.Sprintf(`{"resourceFlavors": [{"name": "default"}], "fairSharing": {"enable": true, "usageHalfLifeSeconds": 3600},
				"cohorts": [{"name": "all", "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "default", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}]}]}],
				"clusterQueues": [%s, %s]}`, c.lent, queue("larger", c.weightLarger), queue("smaller", c.weightSmaller)))
			now := time.Unix(1_000_000, 0)
			tree.Advance(now)
			if c.past != "" {
				tree.Queue(c.past).Allocate(gpus("", before))
				tree.Settle()
				tree.Advance(now.Add(time.Hour))
				tree.Queue(c.past).Release(gpus("", before))
			}
			heads := []quota.Head{{Queue: tree.Queue("larger"), Charges: gpus("", c.larger)}, {Queue: tree.Queue("smaller"), Charges: gpus("", c.smaller)}}
			if first := tree.Fairest(heads, func(i, j int) bool { return heads[i].Queue.Name == "larger" }); heads[first].Queue.Name != "smaller" {
				t.Errorf("the queue with the larger share comes first")
			}
		})
	}
}

// What is left of past use after a long time decides nothing: queues that differ by less than a
// millionth are equal.
func TestFadedUseDecidesNothing(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, `{"resourceFlavors": [{"name": "default"}], "fairSharing": {"enable": true, "usageHalfLifeSeconds": 3600},
		"cohorts": [{"name": "all", "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "default", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "1000000"}]}]}]}],
		"clusterQueues": [{"name": "a", "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared"}, {"name": "b", "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared"}]}`)
	now := time.Unix(1_000_000, 0)
	tree.Advance(now)
	tree.Queue("a").Allocate(gpus("", 8))
	tree.Settle()
	tree.Advance(now.Add(time.Hour))
	tree.Queue("a").Release(gpus("", 8))
	tree.Settle()
	heads := []quota.Head{{Queue: tree.Queue("a"), Charges: gpus("", 1)}, {Queue: tree.Queue("b"), Charges: gpus("", 1)}}
	first := func() string {
		return heads[tree.Fairest(heads, func(i, j int) bool { return heads[i].Queue.Name == "a" })].Queue.Name
	}
	if first() != "b" {
		t.Error("the queue that has used something just now comes first")
	}
	tree.Advance(now.Add(4 * time.Hour))
	if first() != "a" {
		t.Error("use of four hours ago, less than a millionth, decides")
	}
}
