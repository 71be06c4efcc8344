package admission_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Bounds of one decision, whatever waits: steps of search for each queue, and bytes
// for each of these steps and for each gang.
const (
	mostQueueSteps = 21 * placement.Budget
	bytesPerStep   = 256
	bytesPerGang   = 256 << 10
)

// hard is a gang whose search spends the budget: sets that are spread, of which each
// asks another mix. No two seeds make the same one.
func hard(r *rand.Rand, sets int) []workload.PodSet {
	gang := make([]workload.PodSet, sets)
	for i := range gang {
		gang[i] = workload.PodSet{Name: fmt.Sprintf("set-%d", i), Count: 10 + r.IntN(4), Template: workload.Template{
			Requests: resource.List{"cpu": int64(1 + r.IntN(6)), "memory": int64(1 + r.IntN(6)), "pods": 1},
			Spread:   []workload.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 3 + r.IntN(3)}},
		}}
	}
	return gang
}

func hardWorld() *admission.State {
	s := admission.NewState(nil)
	for i := range 3 {
		name := fmt.Sprintf("node-%d", i)
		s.SetNode(capacity.Node{
			Cluster: "c", Name: name, Ready: true, Labels: map[string]string{"kubernetes.io/hostname": name},
			Allocatable: resource.List{"cpu": 130, "memory": 130, "pods": 110},
		})
	}
	return s
}

// TestOneQueueDoesNotSpendEverybodysTime: one queue has many gangs that are hard to
// place. A decision takes no more than the queue's allowance, a gang of another queue
// that comes behind all of them starts in the same decision, and with time all of
// them are looked at. It is not parallel: it counts the process's bytes.
func TestOneQueueDoesNotSpendEverybodysTime(t *testing.T) {
	const gangs = 60
	for _, sets := range []int{6, 7, 8} {
		s, r := hardWorld(), rand.New(rand.NewPCG(uint64(sets), 1))
		decide(s)
		for i := range gangs {
			enqueue(s, i, "hostile", hard(r, sets))
		}
		one := workload.PodSet{Name: "one", Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}}
		enqueue(s, gangs, "other", []workload.PodSet{one})
		plan, steps, bytes := spent(s, func() admission.Plan { return admission.Decide(s, start) })
		if steps < placement.Budget*15 {
			t.Fatalf("%d sets: %d steps: the gangs are not hard enough to tell anything", sets, steps)
		}
		if steps > mostQueueSteps {
			t.Errorf("%d sets: a decision took %d steps, want at most %d", sets, steps, mostQueueSteps)
		}
		if most := steps*bytesPerStep + (gangs+1)*bytesPerGang; bytes > most {
			t.Errorf("%d sets: a decision allocated %d bytes, want at most %d", sets, bytes, most)
		}
		if len(plan.Admissions) == 0 || plan.Admissions[len(plan.Admissions)-1].Workload != "gang-60" {
			t.Errorf("%d sets: the other queue's gang was not admitted: %d were", sets, len(plan.Admissions))
		}
		allLookedAt(t, s, gangs)
	}
}

// allLookedAt lets time pass until no gang waits for its search, and checks that none
// is said not to fit meanwhile that was not searched for.
func allLookedAt(t *testing.T, s *admission.State, gangs int) {
	t.Helper()
	putOff := func() (n int) {
		for i := range gangs {
			why := s.Reason(workload.ID(fmt.Sprintf("gang-%d", i)))
			if why != nil && strings.Contains(why.Message, "have taken all that they may at once") {
				n++
			}
			if why != nil && why.Kind == workload.ReasonUnknown && !strings.HasPrefix(why.Message, "undecided within its budget") {
				t.Errorf("gang %d waits because %q", i, why.Message)
			}
		}
		return n
	}
	if putOff() == 0 {
		t.Error("none was put off")
	}
	before := s.Searched()
	if before.Cut == 0 || before.Undecided == 0 {
		t.Errorf("counted are %+v", before)
	}
	now := start
	for range 120 {
		now = now.Add(time.Second)
		_, steps, _ := spent(s, func() admission.Plan { return admission.Decide(s, now) })
		if steps > 6*placement.Budget {
			t.Errorf("%d steps a second later", steps)
		}
		if putOff() == 0 {
			return
		}
	}
	t.Errorf("%d are still put off after %s", putOff(), now.Sub(start))
}

func spent(s *admission.State, decide func() admission.Plan) (admission.Plan, int64, int64) {
	var before, after runtime.MemStats
	steps := s.Searched().Steps
	runtime.ReadMemStats(&before)
	plan := decide()
	runtime.ReadMemStats(&after)
	return plan, s.Searched().Steps - steps, int64(after.TotalAlloc - before.TotalAlloc)
}

// TestManyPreemptorsAreBounded: gangs of one queue, each of a priority of its own and
// none of which has a place, may all have started gangs evicted. A decision weighs no
// more evictions than the queue's allowance lets it, and another queue's gang starts.
func TestManyPreemptorsAreBounded(t *testing.T) {
	t.Parallel()
	const each = 1500
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`))))
	for i := range each {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8))
	}
	enter := func(i int, queue string, priority int32, pods int, gpus int64) {
		w := &workload.Workload{
			ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: queue, Priority: priority, PodSets: []workload.PodSet{setOf("w", pods, 1, gpus)},
		}
		s.Enqueue(admission.Waiting{Workload: w, Order: int64(i), Since: start})
	}
	for i := range each {
		enter(i, "a", 0, 1, 8)
	}
	if plan := admission.Decide(s, start); len(plan.Admissions) != each {
		t.Fatalf("%d of %d admitted", len(plan.Admissions), each)
	}
	for i := range each {
		enter(each+i, "a", int32(1+i), 1, 9) // no node has so many
	}
	enter(2*each, "other", 0, 1, 0)
	plan, steps, _ := spent(s, func() admission.Plan { return admission.Decide(s, start.Add(time.Minute)) })
	if most := int64(mostQueueSteps + 8*each); steps > most {
		t.Errorf("a decision took %d steps, want at most %d", steps, most)
	}
	if s.Searched().Cut == 0 {
		t.Error("no look for gangs to evict was put off")
	}
	if len(plan.Evictions) > 0 || len(plan.Admissions) != 1 {
		t.Errorf("%d evicted, %d admitted; want the other queue's gang alone", len(plan.Evictions), len(plan.Admissions))
	}
}
