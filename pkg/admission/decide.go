package admission

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/workload"
)

// searchBudget bounds the steps of the search for one gang on one cluster.
const searchBudget = 20_000

// Plan is what shall happen. It is a proposal: whoever carries it out must
// verify it against the ledger.
type Plan struct {
	Admissions []Admission
	Waits      []Wait
}

// Admission starts a workload with a node for each of its pods.
type Admission struct {
	Workload   workload.ID
	Cluster    string
	Placements []workload.Placement
}

// Wait says why a workload does not start now.
type Wait struct {
	Workload workload.ID
	Reason   workload.Reason
}

// Decide returns what to start now. When nothing has been freed since the last
// decision only the workloads that came since are looked at; the others keep
// their reasons. The state is not changed.
func Decide(s *State) Plan {
	consider := s.waiting
	if !s.grown {
		consider = slices.SortedFunc(slices.Values(s.fresh), before)
	}
	marks := map[*placement.Fleet]placement.Mark{}
	for _, fleet := range s.fleets {
		marks[fleet] = fleet.Begin()
	}
	d := decision{state: s, refused: map[string]workload.Reason{}, head: map[string]*Waiting{}}
	if !s.grown {
		d.findHeads()
	}
	for _, w := range consider {
		d.try(w)
	}
	for fleet, mark := range marks {
		fleet.Rollback(mark)
	}
	return d.plan
}

// decision is the work of one Decide.
type decision struct {
	state *State
	plan  Plan
	// refused holds the verdict on shapes that did not fit. Places only get fewer
	// within a decision, so a verdict holds to its end.
	refused map[string]workload.Reason
	// head is the waiting head of each strict queue.
	head map[string]*Waiting
}

// findHeads notes the strict queues in which somebody waits already.
func (d *decision) findHeads() {
	fresh := map[*Waiting]bool{}
	for _, w := range d.state.fresh {
		fresh[w] = true
	}
	for _, w := range d.state.waiting {
		queue := w.Workload.Queue
		if d.state.strict[queue] && !fresh[w] && d.head[queue] == nil {
			d.head[queue] = w
		}
	}
}

func (d *decision) try(w *Waiting) {
	queue := w.Workload.Queue
	if head := d.head[queue]; head != nil && before(head, w) < 0 {
		d.wait(w, workload.Reason{
			Kind:    workload.ReasonBehindHead,
			Message: fmt.Sprintf("workload %s is before it in queue %q, which is %s, and waits", head.Workload.ID, queue, StrictFIFO),
		})
		return
	}
	reason, known := d.refused[w.shape]
	if !known {
		var admitted bool
		if admitted, reason = d.place(w); admitted {
			return
		}
		d.refused[w.shape] = reason
	}
	if d.state.strict[queue] {
		d.head[queue] = w
	}
	d.wait(w, reason)
}

func (d *decision) wait(w *Waiting, reason workload.Reason) {
	d.plan.Waits = append(d.plan.Waits, Wait{w.Workload.ID, reason})
}

// place tries the clusters in the order of their names and returns, when none
// has places for the whole gang, the reason of the one that lacks least.
func (d *decision) place(w *Waiting) (admitted bool, reason workload.Reason) {
	reason = workload.Reason{Kind: workload.ReasonNoNodes, Message: "no cluster has reported any node"}
	for _, cluster := range slices.Sorted(maps.Keys(d.state.fleets)) {
		fleet := d.state.fleets[cluster]
		if fleet.Len() == 0 {
			continue
		}
		verdict := fleet.Solve(w.Workload, searchBudget)
		if verdict.Outcome == placement.Fits {
			fleet.Take(w.Workload, verdict.Placements)
			d.plan.Admissions = append(d.plan.Admissions, Admission{w.Workload.ID, cluster, verdict.Placements})
			return true, workload.Reason{}
		}
		why := verdict.Reason()
		if nearer(*why, reason) {
			reason = *why
		}
	}
	return false, reason
}

// nearer reports whether a gang with reason a is nearer to its start than with b.
func nearer(a, b workload.Reason) bool {
	if a.Shortage == nil || b.Shortage == nil {
		return b.Kind == workload.ReasonNoNodes || a.Kind == workload.ReasonUnknown
	}
	return a.Shortage.Unplaced < b.Shortage.Unplaced
}
