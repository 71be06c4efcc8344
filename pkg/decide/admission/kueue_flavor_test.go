package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// shelf is what the queues "a" and "b" of a cohort have and use of a flavor, in gangs of one GPU.
// The gang that waits in "a" may evict those of low priority there, and what "b" has borrowed.
type shelf struct {
	nominalA, nominalB, low, high, b int
}

// offer is how a gang could start in a flavor, as Kueue has it.
type offer struct {
	mode       int // 0: it fits, 1: others give back, 2: gangs of its own queue go
	level      int // at which it then borrows: 1 in the cohort, 0 not at all
	evictsA    int
	evictsB    int
	impossible bool
}

// offered is the rule of concepts/preemption for a gang of that many GPUs.
func (s shelf) offered(asks int) offer {
	usedA := s.low + s.high
	free := s.nominalA + s.nominalB - usedA - s.b
	level := func(evicted int) int {
		if usedA-evicted+asks > s.nominalA {
			return 1
		}
		return 0
	}
	switch {
	case asks > s.nominalA+s.nominalB:
		return offer{impossible: true}
	case asks <= free:
		return offer{level: level(0)}
	case asks > s.nominalA: // what is more than nominal evicts none
		return offer{impossible: true}
	}
	lent := max(0, s.b-s.nominalB)
	// What others borrow is given back only if the gang then does not borrow.
	for own := 0; own <= s.low && lent > 0; own++ {
		if other := max(0, asks-free-own); other <= lent && level(own) == 0 && usedA < s.nominalA {
			return offer{mode: 1 + min(own, 1), evictsA: own, evictsB: other}
		}
	}
	if own := asks - free; own <= s.low {
		return offer{mode: 2, level: level(own), evictsA: own}
	}
	return offer{impossible: true}
}

// chosen is the flavor of Kueue's search and how the gang starts there; -1 for none.
func chosen(shelves []shelf, asks int, borrowStops, preemptStops, nearerFirst bool) (best int, how offer) {
	best = -1
	for i, s := range shelves {
		o := s.offered(asks)
		if o.impossible {
			continue
		}
		if (o.level == 0 || borrowStops) && (o.mode == 0 || preemptStops) {
			return i, o
		}
		rank := func(o offer) int {
			if nearerFirst {
				return o.level*3 + o.mode
			}
			return o.mode*2 + o.level
		}
		if best < 0 || rank(o) < rank(how) {
			best, how = i, o
		}
	}
	return best, how
}

// TestFlavorsAreChosenByWhatIsEvicted: of flavors that need evictions counts how far the gang
// borrows after them, and one that only other queues give back comes before one that costs a gang
// of the own queue; so with all settings of flavorFungibility.
func TestFlavorsAreChosenByWhatIsEvicted(t *testing.T) {
	t.Parallel()
	later, evicting := 0, 0
	drawn(t, func() bool { return later > 0 && evicting > 0 }, func(t *rapid.T) {
		few := func(label string, most int) int { return rapid.IntRange(0, most).Draw(t, label) }
		var shelves []shelf
		for range rapid.IntRange(2, 3).Draw(t, "flavors") {
			s := shelf{nominalA: few("nominal of a", 4), nominalB: few("nominal of b", 4)}
			s.b = few("b uses", s.nominalA+s.nominalB)
			s.high = few("of high priority", min(2, s.nominalA+s.nominalB-s.b))
			s.low = few("of low priority", s.nominalA+s.nominalB-s.b-s.high)
			shelves = append(shelves, s)
		}
		asks := rapid.IntRange(1, 4).Draw(t, "asks")
		borrow, preempt := rapid.Bool().Draw(t, "borrowing stops"), rapid.Bool().Draw(t, "preemption stops")
		nearer := !borrow && !preempt && rapid.Bool().Draw(t, "nearer first")
		s := shelvesState(t, shelves, borrow, preempt, nearer)
		s.Enqueue(admission.Waiting{Order: 1000, Since: start, Workload: &workload.Workload{
			ID: "waiting", Queue: "a", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 1, 0, int64(asks))},
		}})
		plan := admission.Decide(s, start)
		want, how := chosen(shelves, asks, borrow, preempt, nearer)
		got, gotHow := outcome(plan)
		if got != want || want >= 0 && (gotHow.evictsA != how.evictsA || gotHow.evictsB != how.evictsB) {
			t.Fatalf("%d GPUs are had of flavor %d (%+v), want %d (%+v); borrowing stops %t, preemption stops %t, nearer first %t; of %+v: %+v",
				asks, got, gotHow, want, how, borrow, preempt, nearer, shelves, plan)
		}
		if want > 0 {
			later++
		}
		if how.mode > 0 {
			evicting++
		}
	})
}

// outcome is the flavor that the waiting gang gets or evicts for, -1 for none, and whom.
func outcome(plan admission.Plan) (flavor int, how offer) {
	flavor = -1
	for _, a := range plan.Admissions {
		_, _ = fmt.Sscanf(a.Flavors[0].Flavors["nvidia.com/gpu"], "f%d", &flavor)
	}
	for _, e := range plan.Evictions {
		var queue string
		_, _ = fmt.Sscanf(strings.ReplaceAll(string(e.Workload), "-", " "), "%s %d", &queue, &flavor)
		if queue == "a" {
			how.evictsA++
		} else {
			how.evictsB++
		}
	}
	return flavor, how
}

// shelvesState has the gangs run, each flavor on a node with room for all that its quota allows.
func shelvesState(t *rapid.T, shelves []shelf, borrowStops, preemptStops, nearerFirst bool) *admission.State {
	word := func(stops bool) string {
		if stops {
			return "MayStopSearch"
		}
		return "TryNextFlavor"
	}
	preference := ""
	if nearerFirst {
		preference = `, "preference": "BorrowingOverPreemption"`
	}
	var flavors, ofA, ofB []string
	for i, s := range shelves {
		of := func(nominal int) string {
			return fmt.Sprintf(`{"name": "f%d", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}`, i, nominal)
		}
		flavors = append(flavors, fmt.Sprintf(`{"name": "f%d", "nodeLabels": {"kind": "f%d"}}`, i, i))
		ofA, ofB = append(ofA, of(s.nominalA)), append(ofB, of(s.nominalB))
	}
	queue := func(name string, of []string, more string) string {
		return fmt.Sprintf(`{"name": %q, "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared",
			"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [%s]}]%s}`, name, strings.Join(of, ","), more)
	}
	tree, err := quota.New(parsed(t, fmt.Sprintf(`{"resourceFlavors": [%s], "clusterQueues": [%s, %s]}`, strings.Join(flavors, ","),
		queue("a", ofA, fmt.Sprintf(`, "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
			"flavorFungibility": {"whenCanBorrow": %q, "whenCanPreempt": %q%s}`, word(borrowStops), word(preemptStops), preference)), queue("b", ofB, ""))))
	if err != nil {
		t.Fatal(err)
	}
	s := admission.NewState(tree)
	for i, of := range shelves {
		node := nodeOf(fmt.Sprint("node-", i), 1000, 1000)
		node.Labels["kind"] = fmt.Sprint("f", i)
		s.SetNode(node)
		for n := range of.low + of.high + of.b {
			w := &workload.Workload{ID: workload.ID(fmt.Sprintf("a-%d-%d", i, n)), Queue: "a", PodSets: []workload.PodSet{setOf("workers", 1, 0, 1)}}
			switch {
			case n >= of.low+of.high:
				w.ID, w.Queue = workload.ID(fmt.Sprintf("b-%d-%d", i, n)), "b"
			case n >= of.low:
				w.Priority = 9
			}
			s.Start(admission.Started{
				Workload: w, Order: int64(100*i + n), Cluster: "c", Admitted: start.Add(-time.Duration(10+n) * time.Second),
				Flavors:    []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": fmt.Sprint("f", i)}}},
				Placements: []workload.Placement{{PodSet: "workers", Node: fmt.Sprint("node-", i), Pods: 1}},
			})
		}
	}
	return s
}
