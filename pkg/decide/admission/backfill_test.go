package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// stream is a queue with strategy Backfill on a few nodes under an endless stream
// of small gangs, in which a large one waits.
type stream struct {
	state    *admission.State
	now      time.Time
	ends     map[workload.ID]time.Time
	order    int64
	declared bool
	started  map[workload.ID]time.Time
}

const (
	streamPatience = 10 * time.Minute
	longestRun     = 15 * time.Minute
)

func newStream(t testing.TB, policy quota.BackfillPolicy, nodes int, declared bool) *stream {
	policy.PatienceSeconds = int64(streamPatience / time.Second)
	s := &stream{now: start, ends: map[workload.ID]time.Time{}, started: map[workload.ID]time.Time{}, declared: declared}
	s.state = admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{
		{Name: "queue", Strategy: quota.Backfill, Backfill: &policy},
		{Name: "other", Strategy: quota.BestEffortFIFO},
	}}))
	for i := range nodes {
		s.state.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 8, 8))
	}
	return s
}

func (s *stream) submit(id, queue string, set workload.PodSet, run time.Duration) {
	w := admission.Waiting{Order: s.order, Since: s.now, Workload: &workload.Workload{
		ID: workload.ID(id), Queue: queue, PodSets: []workload.PodSet{set},
	}}
	if s.order++; s.declared {
		w.RunTime = run
	}
	s.ends[w.Workload.ID] = time.Time{}.Add(run) // until it starts: how long it runs
	s.state.Enqueue(w)
}

// step lets a second pass.
func (s *stream) step() {
	for id, at := range s.started {
		if !s.now.Before(at.Add(s.ends[id].Sub(time.Time{}))) {
			s.state.Release(id)
			delete(s.started, id)
		}
	}
	for _, a := range admission.Decide(s.state, s.now).Admissions {
		s.started[a.Workload] = s.now
	}
	s.now = s.now.Add(time.Second)
}

// Promise G6: however many small gangs come, the head of a Backfill queue starts
// within the bound of the package comment. It holds with declared run times and
// without, whatever the order, and when the small gangs come by another queue.
func TestNoGangStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		order := rapid.SampledFrom([]string{quota.Submission, quota.ShortestBackfill, quota.ShortestFirst}).Draw(rt, "order")
		nodes := rapid.IntRange(1, 4).Draw(rt, "nodes")
		policy := quota.BackfillPolicy{Order: order, Depth: rapid.IntRange(0, 5).Draw(rt, "depth"), PatienceFactor: rapid.Int64Range(0, 3).Draw(rt, "factor")}
		s := newStream(t, policy, nodes, rapid.Bool().Draw(rt, "declared"))
		small := 0
		feed := func() {
			for range rapid.IntRange(0, 3).Draw(rt, "arrivals") {
				small++
				run := time.Duration(rapid.IntRange(60, int(longestRun/time.Second)).Draw(rt, "run")) * time.Second
				queue := rapid.SampledFrom([]string{"queue", "other"}).Draw(rt, "by")
				s.submit(fmt.Sprintf("small-%d", small), queue, setOf("workers", 1, 1, rapid.Int64Range(1, 4).Draw(rt, "gpus")), run)
			}
		}
		for range 40 { // the cluster is busy, and some wait already
			feed()
			s.step()
		}
		waitingBefore := 0
		for id := range s.ends {
			if strings.HasPrefix(string(id), "small") && s.state.Reason(id) != nil {
				waitingBefore++
			}
		}
		s.submit("large", "queue", setOf("workers", nodes, 1, 8), longestRun)
		submitted := s.now
		// Those before it, one after the other at worst, then itself.
		bound := streamPatience + time.Duration(policy.PatienceFactor)*longestRun + time.Duration(waitingBefore+2)*longestRun
		for s.state.Reason("large") != nil || s.now.Equal(submitted) {
			if s.now.Sub(submitted) > bound {
				rt.Fatalf("the large gang waits for more than %s: %+v", bound, s.state.Reason("large"))
			}
			if s.now.Second()%20 == 0 {
				feed()
			}
			s.step()
		}
	})
}

// Without Backfill the same stream starves it, which shows that the test above can fail,
// until the patience of the BestEffortFIFO queue is over. Then it starts within the bound.
func TestAStreamStarvesAGangOfABestEffortQueueForADay(t *testing.T) {
	t.Parallel()
	s := newStream(t, quota.BackfillPolicy{}, 1, true)
	for i := range 8 {
		s.submit(fmt.Sprintf("first-%d", i), "other", setOf("workers", 1, 1, 1), time.Duration(i+1)*time.Minute)
	}
	s.step()
	s.submit("large", "other", setOf("workers", 1, 1, 8), longestRun)
	submitted, most := s.now, 24*time.Hour+2*longestRun
	for i := 0; s.state.Reason("large") != nil || i == 0; i++ {
		if i%60 == 0 {
			s.submit(fmt.Sprintf("small-%d", i), "other", setOf("workers", 1, 1, 1), 8*time.Minute)
		}
		s.step()
		if s.now.Sub(submitted) > most {
			t.Fatalf("the large gang waits for more than %s: %+v", most, s.state.Reason("large"))
		}
	}
	if waited := s.now.Sub(submitted); waited < 24*time.Hour {
		t.Errorf("it waited for %s: the stream is too thin to starve anybody", waited)
	}
}

func TestPlacesAreHeldForTheHead(t *testing.T) {
	t.Parallel()
	s := newStream(t, quota.BackfillPolicy{}, 2, true)
	s.submit("a", "queue", setOf("workers", 1, 1, 8), 10*time.Minute)
	s.step()
	s.submit("head", "queue", setOf("workers", 2, 1, 8), 5*time.Minute)
	s.submit("long", "queue", setOf("workers", 1, 1, 8), 11*time.Minute)
	s.submit("short", "other", setOf("workers", 1, 1, 8), 5*time.Minute)
	s.step()
	if _, started := s.started["short"]; !started {
		t.Errorf("a gang that ends before the head starts does not pass: %+v", s.state.Reason("short"))
	}
	why := s.state.Reason("long")
	if why == nil || why.Kind != workload.ReasonBehindHead && why.Kind != workload.ReasonFit {
		t.Fatalf("a gang that would delay the head waits for %+v", why)
	}
	reserved := s.state.HeadReservations()
	if len(reserved) != 1 || reserved[0].Workload != "head" || len(reserved[0].Placements) != 2 || !reserved[0].Start.Equal(start.Add(10*time.Minute)) {
		t.Errorf("reservations are %+v, want both nodes for the head, ten minutes after the start", reserved)
	}
	head := s.state.Reason("head")
	if head == nil || head.Start == nil || !head.Start.By.Equal(reserved[0].Start) || !strings.Contains(head.Message, "starts by 1970-01-12 13:56:40 UTC at the latest") {
		t.Errorf("the reason of the head is %+v", head)
	}
}

// No gang passes a head that waits for quota beyond its patience, and the reason of the
// gangs behind it says so.
func TestBehindAHeadThatWaitsForQuotaTooLong(t *testing.T) {
	t.Parallel()
	config := gpuPolicy(t, false, gpuQueue("a", 4, ""))
	config.ClusterQueues[0].Strategy = quota.Backfill
	config.ClusterQueues[0].Backfill = &quota.BackfillPolicy{PatienceSeconds: 60}
	s := admission.NewState(treeOf(t, config))
	s.SetNode(nodeOf("one", 64, 8))
	enter := func(i int, id string, gpus int) {
		s.Enqueue(admission.Waiting{Order: int64(i), Since: start, Workload: &workload.Workload{
			ID: workload.ID(id), Queue: "a", PodSets: []workload.PodSet{setOf("workers", gpus, 0, 1)},
		}})
	}
	enter(0, "runs", 2)
	enter(1, "head", 3)
	admission.Decide(s, start)
	late := start.Add(2 * time.Minute)
	enter(2, "behind", 1)
	plan := admission.Decide(s, late)
	why := s.Reason("behind")
	if len(plan.Admissions) > 0 || why == nil || why.Kind != workload.ReasonBehindHead || !strings.Contains(why.Message, "has waited for quota for more than 1m0s") {
		t.Fatalf("plan is %+v, and the one behind waits for %+v", plan, why)
	}
	s.Leave("runs")
	s.Release("runs")
	if plan := admission.Decide(s, late); len(plan.Admissions) != 2 {
		t.Errorf("with quota free the plan is %+v, want both admitted", plan)
	}
}

// TestBehindAHeadThatBorrows: a head that asks for more than the nominal quota of its queue is
// not passed, either, once its patience is over and it could start with all gangs of its queue
// gone. While others have borrowed what it lacks, that is not so, and its queue goes on.
func TestBehindAHeadThatBorrows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others int // GPUs that the other queue uses
		wait   time.Duration
		closed bool
	}{
		"its queue has all":         {0, 25 * time.Hour, true},
		"others leave enough":       {7, 25 * time.Hour, true},
		"others do not":             {8, 25 * time.Hour, false},
		"before its patience is up": {0, 23 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 8, ""), gpuQueue("b", 8, ""))))
			for i := range 4 {
				s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 64, 16))
			}
			order := 0
			enter := func(id, queue string, gpus int, since time.Time) {
				s.Enqueue(admission.Waiting{Order: int64(order), Since: since, Workload: &workload.Workload{
					ID: workload.ID(id), Queue: queue, PodSets: []workload.PodSet{setOf("workers", gpus, 0, 1)},
				}})
				order++
			}
			if c.others > 0 {
				enter("other", "b", c.others, start)
			}
			small := min(9, 16-c.others)
			for i := range small { // a stream of small ones that borrow
				enter(fmt.Sprintf("small-%d", i), "a", 1, start)
			}
			admission.Decide(s, start)
			enter("head", "a", 9, start)
			admission.Decide(s, start)
			now := start.Add(c.wait)
			s.Leave("small-0")
			s.Release("small-0")
			enter("behind", "a", 1, now)
			plan := admission.Decide(s, now)
			if closed := len(plan.Admissions) == 0; closed != c.closed {
				t.Fatalf("the plan is %+v, and the one behind waits for %+v", plan, s.Reason("behind"))
			}
			if !c.closed {
				return
			}
			if why := s.Reason("behind"); why.Kind != workload.ReasonBehindHead {
				t.Errorf("the one behind waits for %+v", why)
			}
			for i := range small - 1 {
				id := workload.ID(fmt.Sprintf("small-%d", i+1))
				s.Leave(id)
				s.Release(id)
			}
			if plan := admission.Decide(s, now); len(plan.Admissions) == 0 || plan.Admissions[0].Workload != "head" {
				t.Errorf("with all of its queue gone the plan is %+v", plan)
			}
		})
	}
}
