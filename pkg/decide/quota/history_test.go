package quota_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
)

const gpu = resource.Name("nvidia.com/gpu")

// past is the definition: the average of what a queue used, with weights that halve with
// each half-life.
type past struct {
	half    float64
	periods []struct{ from, to, used float64 }
}

func (p *past) use(from, to, used float64) {
	p.periods = append(p.periods, struct{ from, to, used float64 }{from, to, used})
}

func (p *past) at(now float64) (sum float64) {
	for _, each := range p.periods {
		sum += each.used * (math.Exp2((each.to-now)/p.half) - math.Exp2((each.from-now)/p.half))
	}
	return sum
}

// TestPastUsageIsTheDecayedAverage: however often decisions are made, and whichever leader
// makes them, past use is what the definition says. A leader begins with what the last one
// has stored.
func TestPastUsageIsTheDecayedAverage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.SampledFrom([]int64{60, 3600, 7 * 24 * 3600}).Draw(t, "half-life")
		lead := func() *quota.Tree {
			tree, err := quota.New(quota.Config{
				ClusterQueues: []quota.ClusterQueue{{Name: "a", Cohort: "all"}},
				FairSharing:   &quota.FairSharingPolicy{Enable: true, UsageHalfLifeSeconds: half},
			})
			if err != nil {
				t.Fatal(err)
			}
			return tree
		}
		tree, began := lead(), time.Unix(1_000_000, 0)
		now, used := began, int64(0)
		tree.Advance(now)
		model := past{half: float64(half)}
		stored := map[string]quota.History{}
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			change := rapid.Int64Range(-used, 64).Draw(t, "change")
			byDecision := rapid.Bool().Draw(t, "by a decision")
			passed := time.Duration(rapid.Int64Range(1, 3*half*1e7).Draw(t, "passed"))
			from := now
			for range rapid.SampledFrom([]int{1, 2, 1000}).Draw(t, "decisions") {
				now = now.Add(passed)
				tree.Advance(now)
				tree.Settle()
			}
			now = now.Add(passed)
			if !byDecision { // a message has brought it
				tree.Queue("a").Allocate(gpus("", change))
			}
			tree.Advance(now)
			if byDecision {
				tree.Queue("a").Allocate(gpus("", change))
			}
			tree.Settle()
			model.use(from.Sub(began).Seconds(), now.Sub(began).Seconds(), float64(used))
			used += change
			for _, changed := range tree.TakePastUsage() {
				stored[changed.Queue] = changed.History
			}
			if rapid.Bool().Draw(t, "another leads") {
				tree = lead()
				tree.Queue("a").Allocate(gpus("", used))
				tree.Queue("a").SetHistory(stored["a"])
				tree.ForgetUsageChanges()
				tree.Advance(now)
			}
			got, want := tree.Queue("a").Past().Used[gpu], model.at(now.Sub(began).Seconds())
			if math.Abs(got-want) > 2e-3+want*1e-6 {
				t.Fatalf("past use is %f GPUs after %s, want %f", got, now.Sub(began), want)
			}
		}
	})
}

// TestPastUsageGoesOnWithAClockThatIsBehind: a leader with an earlier time keeps what is
// stored, and counts from its own time on.
func TestPastUsageGoesOnWithAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, `{"fairSharing": {"enable": true, "usageHalfLifeSeconds": 60}, "clusterQueues": [{"name": "a", "cohortName": "all"}]}`)
	q, now := tree.Queue("a"), time.Unix(1_000_000, 0)
	q.SetHistory(quota.History{At: now.Add(365 * 24 * time.Hour), Used: map[resource.Name]float64{gpu: 8}})
	tree.Advance(now)
	if got := q.Past().Used[gpu]; got != 8 {
		t.Errorf("with an earlier clock past use is %f GPUs, want 8", got)
	}
	tree.Advance(now.Add(time.Minute))
	if got := q.Past().Used[gpu]; math.Abs(got-4) > 1e-9 {
		t.Errorf("after a half-life past use is %f GPUs, want 4", got)
	}
}

// TestACopyKnowsWhatChangedBefore: usage that changed after the last decision counts in a
// copy as it does in the tree, also when the copy's own usage changes before it advances.
func TestACopyKnowsWhatChangedBefore(t *testing.T) {
	t.Parallel()
	tree, err := quota.New(quota.Config{
		ClusterQueues: []quota.ClusterQueue{{Name: "a", Cohort: "all"}, {Name: "b", Cohort: "all"}},
		FairSharing:   &quota.FairSharingPolicy{Enable: true, UsageHalfLifeSeconds: 3600},
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1_000_000, 0)
	tree.Advance(began)
	charges := []quota.Charge{{FlavorResource: quota.FlavorResource{Resource: gpu}, Amount: 8}}
	tree.Queue("a").Allocate(charges)
	copied := tree.Copy()
	for name, of := range map[string]*quota.Tree{"tree": tree, "copy": copied} {
		t.Run(name, func(t *testing.T) {
			of.Queue("b").Allocate(charges)
			of.Advance(began.Add(time.Hour))
			if past := of.Queue("a").Past().Used[gpu]; past != 0 {
				t.Errorf("queue a used %v on average before its first charge, want 0", past)
			}
		})
	}
	if changed := copied.TakePastUsage(); len(changed) != 1 || changed[0].Queue != "b" {
		t.Errorf("the copy has past usage %v to store, want that of its own change alone", changed)
	}
}
