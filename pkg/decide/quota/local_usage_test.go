package quota_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// kueueUse is Kueue's rule (KEP 4136): with A = 1 - 0.5^(elapsed/halfLife) what was consumed
// becomes (1-A)*consumed + A*usage, and an admission adds A*requests, with the sampling
// interval as elapsed time.
type kueueUse struct {
	half, sampling float64
	consumed, used map[resource.Name]float64
}

func (k *kueueUse) passes(seconds float64) {
	a := 1 - math.Pow(0.5, seconds/k.half)
	for name := range k.consumed {
		k.consumed[name] = (1-a)*k.consumed[name] + a*k.used[name]
	}
}

func (k *kueueUse) admits(name resource.Name, amount float64) {
	k.consumed[name] += (1 - math.Pow(0.5, k.sampling/k.half)) * amount
	k.used[name] += amount
}

func (k *kueueUse) usage(weights map[resource.Name]float64, weight float64) float64 {
	return (weights["cpu"]*k.consumed["cpu"] + weights["nvidia.com/gpu"]*k.consumed["nvidia.com/gpu"]) / weight
}

// TestUseOfALocalQueueIsKueues: by Kueue's rule, whatever the times of decisions, and also
// when another leader goes on with what is stored.
func TestUseOfALocalQueueIsKueues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.SampledFrom([]float64{10, 3600, 7 * 24 * 3600}).Draw(t, "half-life")
		sampling := rapid.SampledFrom([]float64{0, 1, 3600}).Draw(t, "sampling interval")
		weights := map[resource.Name]float64{"cpu": rapid.SampledFrom([]float64{0, 1, 2.5}).Draw(t, "weight of cores"), "nvidia.com/gpu": 1}
		milli := rapid.Int64Range(1, 5000).Draw(t, "weight of the LocalQueue, in thousandths")
		seconds := func(s float64) workload.Duration { return workload.Duration(s * float64(time.Second)) }
		lead := func() *quota.Tree {
			tree, err := quota.New(quota.Config{
				ClusterQueues:        []quota.ClusterQueue{{Name: "cq", AdmissionScope: &quota.AdmissionScope{AdmissionMode: quota.UsageBasedAdmissionFairSharing}}},
				LocalQueues:          []quota.LocalQueue{{Namespace: "team", Name: "lq", ClusterQueue: "cq", FairSharing: &quota.FairSharing{WeightMilli: milli}}},
				AdmissionFairSharing: &quota.AdmissionFairSharing{UsageHalfLifeTime: seconds(half), UsageSamplingInterval: seconds(sampling), ResourceWeights: weights},
			})
			if err != nil {
				t.Fatal(err)
			}
			return tree
		}
		if sampling == 0 {
			sampling = 300
		}
		model := kueueUse{half, sampling, map[resource.Name]float64{"cpu": 0, "nvidia.com/gpu": 0}, map[resource.Name]float64{}}
		tree, now := lead(), time.Unix(1_000_000, 0)
		tree.Advance(now)
		stored := map[string]quota.PastUsage{}
		var running [][]quota.Charge
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			passed := time.Duration(rapid.Int64Range(1, int64(2*half*1e9)).Draw(t, "passed"))
			for range rapid.SampledFrom([]int{1, 2, 100}).Draw(t, "decisions") {
				now = now.Add(passed)
				model.passes(passed.Seconds())
				tree.Advance(now)
			}
			if len(running) > 0 && rapid.Bool().Draw(t, "one ends") {
				for _, c := range running[0] {
					model.used[c.Resource] -= float64(c.Amount) / inOne(c.Resource)
				}
				tree.Settle()
				tree.Queue("cq").ReleaseFor("team/lq", running[0])
				tree.Advance(now)
				running = running[1:]
			}
			for range rapid.IntRange(0, 3).Draw(t, "admissions") {
				charges := []quota.Charge{
					{FlavorResource: quota.FlavorResource{Resource: "cpu"}, Amount: rapid.Int64Range(0, 64_000).Draw(t, "millicores")},
					{FlavorResource: quota.FlavorResource{Resource: "nvidia.com/gpu"}, Amount: rapid.Int64Range(0, 8).Draw(t, "GPUs")},
				}
				for _, c := range charges {
					model.admits(c.Resource, float64(c.Amount)/inOne(c.Resource))
				}
				tree.Queue("cq").AllocateFor("team/lq", charges)
				tree.Queue("cq").Enter("team/lq", charges)
				running = append(running, charges)
			}
			got, want := tree.UsageOf("team/lq"), model.usage(weights, float64(milli)/1000)
			rounding := max(1e-2, 1/float64(milli)) // use is in thousandths, and a small weight magnifies it
			if math.Abs(got-want) > rounding+want*1e-6 {
				t.Fatalf("use is %f, by Kueue's rule %f", got, want)
			}
			tree.Settle()
			for _, changed := range tree.TakePastUsage() {
				stored[changed.Queue] = changed
			}
			if rapid.Bool().Draw(t, "another leads") {
				tree = lead()
				for _, charges := range running {
					tree.Queue("cq").AllocateFor("team/lq", charges)
				}
				for _, past := range stored {
					tree.SetPastUsage(past)
				}
				tree.ForgetUsageChanges()
				tree.Advance(now)
				if again := tree.UsageOf("team/lq"); math.Abs(again-got) > 1e-9*(1+got) {
					t.Fatalf("use is %f, and %f for the next leader", got, again)
				}
			}
		}
	})
}

// inOne is how many units a core or piece has.
func inOne(name resource.Name) float64 {
	if name == resource.CPU {
		return 1000
	}
	return 1
}

// TestOnlyWhatQuotaCoversCountsAsUsed: as in Kueue. Memory that no quota bounds would
// otherwise be most of the sum.
func TestOnlyWhatQuotaCoversCountsAsUsed(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, `{"resourceFlavors": [{"name": "f"}], "admissionFairSharing": {"usageHalfLifeTime": "1h", "usageSamplingInterval": "1h"},
		"clusterQueues": [{"name": "cq", "quotaCheckStrategy": "IgnoreUndeclared", "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
		"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]}]}],
		"localQueues": [{"namespace": "a", "name": "lq", "clusterQueue": "cq"}, {"namespace": "b", "name": "lq", "clusterQueue": "cq", "fairSharing": {"weight": 0}}]}`)
	tree.Advance(time.Unix(1_000_000, 0))
	charges := append(gpus("f", 4), quota.Charge{FlavorResource: quota.FlavorResource{Resource: "memory"}, Amount: 1 << 40})
	tree.Queue("cq").AllocateFor("a/lq", charges)
	tree.Queue("cq").Enter("a/lq", charges)
	if got := tree.UsageOf("a/lq"); got != 2 {
		t.Errorf("use is %f, want 2: half of 4 GPUs after one half-life", got)
	}
	if got := tree.UsageOf("b/lq"); !math.IsInf(got, 1) {
		t.Errorf("use of a LocalQueue with weight zero is %f, want it infinite", got)
	}
}

// TestAdmissionFairSharingIsChecked: what is wrong is refused, and what does nothing is named.
func TestAdmissionFairSharingIsChecked(t *testing.T) {
	t.Parallel()
	scope := func(mode string) []quota.ClusterQueue {
		return []quota.ClusterQueue{{Name: "cq", AdmissionScope: &quota.AdmissionScope{AdmissionMode: mode}}}
	}
	wrong := quota.Config{
		ClusterQueues:        append(scope("Sometimes"), quota.ClusterQueue{Name: "other", AdmissionScope: &quota.AdmissionScope{}}),
		LocalQueues:          []quota.LocalQueue{{Namespace: "n", Name: "lq", ClusterQueue: "cq", FairSharing: &quota.FairSharing{WeightMilli: -1}}},
		AdmissionFairSharing: &quota.AdmissionFairSharing{ResourceWeights: map[resource.Name]float64{"cpu": -1, "memory": math.NaN(), "gpu": 1}},
	}
	err := wrong.Validate()
	for _, want := range []string{
		`clusterQueues[0].admissionScope.admissionMode: "Sometimes": want one of UsageBasedAdmissionFairSharing, NoAdmissionFairSharing`,
		"clusterQueues[1].admissionScope.admissionMode: is missing",
		"localQueues[0].fairSharing.weight", "admissionFairSharing.resourceWeights.cpu: -1", "admissionFairSharing.resourceWeights.memory: NaN",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("faults are %v, want one with %q", err, want)
		}
	}
	idle := quota.Config{
		ClusterQueues: scope(quota.UsageBasedAdmissionFairSharing),
		LocalQueues:   []quota.LocalQueue{{Namespace: "n", Name: "lq", ClusterQueue: "cq", FairSharing: &quota.FairSharing{WeightMilli: 2000}}},
	}
	notes := strings.Join(idle.Notes(), "\n")
	for _, want := range []string{`clusterQueue "cq": admissionScope does nothing`, `localQueue "lq" of namespace "n": fairSharing does nothing`} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes are %q, want one with %q", notes, want)
		}
	}
	idle.AdmissionFairSharing = &quota.AdmissionFairSharing{UsageHalfLifeTime: workload.Duration(time.Hour)}
	if notes := idle.Notes(); len(notes) > 0 {
		t.Errorf("notes are %q, want none", notes)
	}
}
