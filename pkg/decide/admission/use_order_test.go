package admission_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

const gpu = resource.Name("nvidia.com/gpu")

// usePolicy is a ClusterQueue of GPUs that is ordered by the use of its LocalQueues a, b
// and c, whose weights are in thousandths.
func usePolicy(strategy string, gpus int64, half, sampling time.Duration, weights []int64) quota.Config {
	c := quota.Config{
		Flavors: []quota.Flavor{{Name: "f"}},
		ClusterQueues: []quota.ClusterQueue{{
			Name: "cq", Strategy: strategy, QuotaCheckStrategy: quota.IgnoreUndeclared,
			AdmissionScope: &quota.AdmissionScope{AdmissionMode: quota.UsageBasedAdmissionFairSharing},
			ResourceGroups: []quota.ResourceGroup{{CoveredResources: []resource.Name{gpu}, Flavors: []quota.FlavorQuotas{{
				Name: "f", Resources: []quota.ResourceQuota{{Name: gpu, Nominal: gpus}},
			}}}},
		}},
		AdmissionFairSharing: &quota.AdmissionFairSharing{UsageHalfLifeTime: workload.Duration(half), UsageSamplingInterval: workload.Duration(sampling)},
	}
	for i, weight := range weights {
		c.LocalQueues = append(c.LocalQueues, quota.LocalQueue{
			Namespace: "team", Name: string(rune('a' + i)), ClusterQueue: "cq", FairSharing: &quota.FairSharing{WeightMilli: weight},
		})
	}
	return c
}

// modelGang is a gang of the model.
type modelGang struct {
	id       workload.ID
	local    int
	priority int32
	order    int64
	gpus     int
}

// useModel is Kueue's rule (KEP 4136 and its queue): the first of the waiting, by the use of
// their LocalQueue per weight, then priority, then time, is admitted if it is within quota;
// each admission adds the entry penalty. One that is not stays behind under BestEffortFIFO,
// and stops the queue under StrictFIFO.
type useModel struct {
	half, sampling float64
	quota, used    int
	weights        []int64
	consumed       []float64
	using          []int
	waiting        []modelGang
	running        []modelGang
	strict         bool
	close          bool // two uses are too close to be compared
}

func (m *useModel) usage(local int) float64 {
	return m.consumed[local] / (float64(m.weights[local]) / 1000)
}

func (m *useModel) passes(seconds float64) {
	a := 1 - math.Pow(0.5, seconds/m.half)
	for i := range m.consumed {
		m.consumed[i] = (1-a)*m.consumed[i] + a*float64(m.using[i])
	}
}

func (m *useModel) admit() (admitted []workload.ID) {
	var behind []modelGang
	for len(m.waiting) > 0 {
		for i := range m.consumed {
			for j := range i {
				difference := math.Abs(m.usage(i) - m.usage(j))
				m.close = m.close || difference != 0 && difference < 1e-2
			}
		}
		first := slices.MinFunc(m.waiting, func(a, b modelGang) int {
			return cmp.Or(cmp.Compare(m.usage(a.local), m.usage(b.local)), cmp.Compare(b.priority, a.priority), cmp.Compare(a.order, b.order))
		})
		if m.used+first.gpus > m.quota {
			if m.strict {
				break
			}
			behind = append(behind, first)
		} else {
			m.used += first.gpus
			m.using[first.local] += first.gpus
			m.consumed[first.local] += (1 - math.Pow(0.5, m.sampling/m.half)) * float64(first.gpus)
			m.running = append(m.running, first)
			admitted = append(admitted, first.id)
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(g modelGang) bool { return g.id == first.id })
	}
	m.waiting = append(m.waiting, behind...)
	return admitted
}

func (m *useModel) end(id workload.ID) {
	i := slices.IndexFunc(m.running, func(g modelGang) bool { return g.id == id })
	g := m.running[i]
	m.used -= g.gpus
	m.using[g.local] -= g.gpus
	m.running = slices.Delete(m.running, i, i+1)
}

// TestWorkloadsGoByTheUseOfTheirLocalQueue: random gangs of three LocalQueues start in the
// order of Kueue's rule, while time passes, gangs end, and the configuration is read again.
func TestWorkloadsGoByTheUseOfTheirLocalQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		half := time.Duration(rapid.SampledFrom([]int{60, 3600}).Draw(t, "half-life")) * time.Second
		sampling := time.Duration(rapid.SampledFrom([]int{1, 300}).Draw(t, "sampling interval")) * time.Second
		weights := []int64{1000, rapid.SampledFrom([]int64{500, 1000, 3000}).Draw(t, "weight of b"), 1000}
		strategy := rapid.SampledFrom([]string{quota.BestEffortFIFO, quota.StrictFIFO}).Draw(t, "strategy")
		policy := usePolicy(strategy, 8, half, sampling, weights)
		tree, err := quota.New(policy)
		if err != nil {
			t.Fatal(err)
		}
		s, now := admission.NewState(tree), start
		s.SetNode(nodeOf("n", 64, 64))
		model := useModel{
			half: half.Seconds(), sampling: sampling.Seconds(), quota: 8, weights: weights, strict: strategy == quota.StrictFIFO,
			consumed: make([]float64, 3), using: make([]int, 3),
		}
		admission.Decide(s, now)
		n := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 4).Draw(t, "submissions") {
				g := modelGang{
					id: workload.ID(fmt.Sprintf("g%d", n)), local: rapid.IntRange(0, 2).Draw(t, "LocalQueue"),
					priority: rapid.Int32Range(0, 1).Draw(t, "priority"), order: int64(n), gpus: rapid.IntRange(1, 6).Draw(t, "GPUs"),
				}
				n++
				model.waiting = append(model.waiting, g)
				s.Enqueue(admission.Waiting{Order: g.order, Workload: &workload.Workload{
					ID: g.id, Namespace: "team", Queue: string(rune('a' + g.local)), Priority: g.priority, PodSets: []workload.PodSet{setOf("workers", g.gpus, 0, 1)},
				}})
			}
			passed := time.Duration(rapid.IntRange(1, 2*int(half/time.Second)).Draw(t, "seconds")) * time.Second
			now = now.Add(passed)
			model.passes(passed.Seconds())
			for _, g := range slices.Clone(model.running) {
				if rapid.Bool().Draw(t, "ends") {
					model.end(g.id)
					s.Release(g.id)
				}
			}
			if rapid.Bool().Draw(t, "configured again") {
				again, err := quota.New(policy)
				if err != nil {
					t.Fatal(err)
				}
				s.Reconfigure(again)
			}
			var got []workload.ID
			for _, a := range admission.Decide(s, now).Admissions {
				got = append(got, a.Workload)
			}
			want := model.admit()
			if model.close {
				t.Skip("uses that rounding may order either way")
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s admits %v after %s, want %v", strategy, got, now.Sub(start), want)
			}
		}
	})
}

// TestAStrictHeadChangesWithTime: while nothing happens, the LocalQueue that runs a gang
// uses more and the one that does not less, until the latter has the head of the queue. A
// decision is due for that.
func TestAStrictHeadChangesWithTime(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, usePolicy(quota.StrictFIFO, 8, time.Hour, time.Minute, []int64{1000, 1000}))
	tree.SetPastUsage(quota.PastUsage{Queue: "team/b", History: quota.History{At: start, Used: map[resource.Name]float64{gpu: 3}}})
	s := admission.NewState(tree)
	s.SetNode(nodeOf("n", 64, 64))
	enqueue := func(id workload.ID, queue string, order int64, gpus int) {
		s.Enqueue(admission.Waiting{Order: order, Workload: &workload.Workload{ID: id, Namespace: "team", Queue: queue, PodSets: []workload.PodSet{setOf("workers", gpus, 0, 1)}}})
	}
	enqueue("running", "a", 0, 6)
	decide(s)
	enqueue("large", "a", 1, 6)
	enqueue("small", "b", 2, 2)
	now := start.Add(time.Second)
	plan := admission.Decide(s, now)
	if len(plan.Admissions) > 0 || s.Position("large") != 1 || s.Position("small") != 2 {
		t.Fatalf("%+v is admitted, and the positions are %d and %d", plan.Admissions, s.Position("large"), s.Position("small"))
	}
	for range 24 * 60 {
		if plan.NextAt.IsZero() || plan.NextAt.After(now.Add(time.Minute)) {
			t.Fatalf("at %s the next decision is due at %s, want it within a minute", now, plan.NextAt)
		}
		now = plan.NextAt
		if plan = admission.Decide(s, now); len(plan.Admissions) > 0 {
			break
		}
	}
	if len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "small" || s.Position("large") != 1 {
		t.Errorf("the last plan is %+v, want that \"small\" is admitted", plan)
	}
	if passed := now.Sub(start); passed < 30*time.Minute || passed > time.Hour { // 6*(1-2^-x) = 3*2^-x
		t.Errorf("its LocalQueue has the head after %s, want about 35 minutes", passed)
	}
}

// TestASnapshotHasTheUseOfLocalQueues: an explanation counts it as the state does.
func TestASnapshotHasTheUseOfLocalQueues(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, usePolicy("", 1, time.Hour, time.Minute, []int64{1000, 1000}))
	s := admission.NewState(tree)
	s.SetNode(nodeOf("n", 64, 64))
	s.SetPastUsage([]quota.PastUsage{{Queue: "team/a", History: quota.History{At: start, Used: map[resource.Name]float64{gpu: 3}}}})
	for i, queue := range []string{"a", "b"} {
		s.Enqueue(admission.Waiting{Order: int64(i), Workload: &workload.Workload{ID: workload.ID("of-" + queue), Namespace: "team", Queue: queue, PodSets: []workload.PodSet{setOf("workers", 2, 0, 1)}}})
	}
	decide(s)
	_, snapshot := s.BeginSnapshot(10).Next(100)
	copied, err := snapshot.State()
	if err != nil {
		t.Fatal(err)
	}
	for of, state := range map[string]*admission.State{"state": s, "snapshot": copied} {
		if a, b := state.Position("of-a"), state.Position("of-b"); a != 2 || b != 1 {
			t.Errorf("in the %s the positions are %d and %d, want 2 and 1", of, a, b)
		}
	}
}
