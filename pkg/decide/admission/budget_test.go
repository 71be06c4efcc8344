package admission_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
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
		t.Run(fmt.Sprintf("%d pod sets", sets), func(t *testing.T) {
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
		})
	}
}

// allLookedAt lets time pass until no gang waits for its search. It checks that until then
// no gang is reported not to fit without a search.
func allLookedAt(t *testing.T, s *admission.State, gangs int) {
	t.Helper()
	putOff := func() (n int) {
		for i := range gangs {
			why := s.Reason(workload.ID(fmt.Sprintf("gang-%d", i)))
			if why != nil && strings.Contains(why.Message, "reached the limit of search steps per second") {
				n++
			}
			if why != nil && why.Kind == workload.ReasonUnknown && !strings.HasPrefix(why.Message, "undecided: ") {
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
		enter(each+i, "a", int32(1+i), 1, 9) // no node has 9
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

// TestHostileQueuesDoNotAddUp: fifty queues each have more gangs that are hard to place
// than can be searched for. Together they take no more of a decision than one of them
// alone, an honest queue's gang starts in the same decision, and one of its gangs that
// has to be searched for has its turn within seconds, also when it comes later.
func TestHostileQueuesDoNotAddUp(t *testing.T) {
	t.Parallel()
	const (
		queues, each = 50, 6
		mostWait     = 8 * time.Second
		mostASecond  = 12 * placement.Budget
	)
	s, r := hardWorld(), rand.New(rand.NewPCG(5, 50))
	decide(s)
	for i := range queues * each {
		enqueue(s, i, fmt.Sprintf("hostile-%02d", i%queues), hard(r, 6))
	}
	last := queues * each
	honest := func(sets []workload.PodSet) workload.ID {
		enqueue(s, last, "honest", sets)
		last++
		return workload.ID(fmt.Sprintf("gang-%d", last-1))
	}
	easy := []workload.PodSet{{Name: "one", Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}}}
	started := honest(easy)
	waits := map[workload.ID]time.Time{honest(hard(r, 6)): start}
	now := start
	for second := range 30 {
		plan, steps, _ := spent(s, func() admission.Plan { return admission.Decide(s, now) })
		if most := int64(mostASecond); second > 0 && steps > most || steps > mostQueueSteps+queues*each*1000 {
			t.Errorf("after %d s a decision took %d steps", second, steps)
		}
		if !slices.ContainsFunc(plan.Admissions, func(a admission.Admission) bool { return a.Workload == started }) && second%10 == 0 {
			t.Errorf("after %d s the honest queue's gang did not start", second)
		}
		for id, since := range waits {
			why := s.Reason(id)
			if why != nil && strings.Contains(why.Message, "reached the limit of search steps per second") {
				if now.Sub(since) > mostWait {
					t.Fatalf("gang %s of the honest queue was not searched for within %s", id, mostWait)
				}
				continue
			}
			delete(waits, id)
		}
		if second%10 == 9 {
			started = honest(easy)
			waits[honest(hard(r, 6))] = now.Add(time.Second)
		}
		now = now.Add(time.Second)
	}
	if s.Searched().Cut == 0 {
		t.Error("no search was put off")
	}
}

// TestSparingIsBounded: a gang for which very many have to go has them evicted, and to
// see who of them could be spared takes no more than a queue may take.
func TestSparingIsBounded(t *testing.T) {
	t.Parallel()
	const each = 1200
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`))))
	for i := range each {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8))
	}
	enter := func(i int, priority int32, pods int) {
		s.Enqueue(admission.Waiting{Order: int64(i), Since: start, Workload: &workload.Workload{
			ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: "a", Priority: priority, PodSets: []workload.PodSet{setOf("w", pods, 1, 8)},
		}})
	}
	for i := range each {
		enter(i, 0, 1)
	}
	if plan := admission.Decide(s, start); len(plan.Admissions) != each {
		t.Fatalf("%d of %d admitted", len(plan.Admissions), each)
	}
	enter(each, 1, each)
	plan, steps, _ := spent(s, func() admission.Plan { return admission.Decide(s, start.Add(time.Minute)) })
	if len(plan.Evictions) != each {
		t.Errorf("%d of %d evicted", len(plan.Evictions), each)
	}
	if steps < each || steps > mostQueueSteps {
		t.Errorf("a decision took %d steps, want at most %d", steps, mostQueueSteps)
	}
}
