package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// hold is a reservation in time: the places that the head of a Backfill queue
// will have when certain gangs have ended. Nobody who comes after the head may
// take what it needs of them.
type hold struct {
	head    *Waiting
	variant *variant
	cluster string
	places  []workload.Placement
	// start is when, by declared run times, the places will be free; zero when
	// that is not known and the nodes are drained.
	start time.Time
	// after are the gangs whose end the head waits for.
	after []*Started
	// drained is since when the nodes have been drained; zero when they are not.
	drained time.Time
	// stale: it must be made anew before it is used.
	stale bool
	// told: the reason of the head says so.
	told bool
	// behind are the buckets that were refused because of it.
	behind map[*bucket]bool
}

// Hold is a reservation in time, as a plan shows it.
type Hold struct {
	Workload   workload.ID
	Cluster    string
	Placements []workload.Placement
	// Start is the time at which the workload starts at the latest if the gangs it
	// waits for keep to their declared run times; zero when that is not known.
	Start time.Time
	After []workload.ID
}

// Holds returns the reservations in time as of the last decision.
func (s *State) Holds() []Hold {
	var holds []Hold
	for _, h := range s.holds {
		if h.cluster != "" {
			holds = append(holds, Hold{h.head.Workload.ID, h.cluster, h.places, h.start, idsOf(h.after)})
		}
	}
	return holds
}

func idsOf(gangs []*Started) []workload.ID {
	ids := make([]workload.ID, len(gangs))
	for i, g := range gangs {
		ids[i] = g.Workload.ID
	}
	return ids
}

// holdOf returns the hold of a head, nil for none.
func (s *State) holdOf(w *Waiting) *hold {
	i := slices.IndexFunc(s.holds, func(h *hold) bool { return h.head == w })
	if i < 0 {
		return nil
	}
	return s.holds[i]
}

// unhold ends a hold and has those looked at again whom it kept back.
func (s *State) unhold(h *hold) {
	s.holds = slices.DeleteFunc(s.holds, func(other *hold) bool { return other == h })
	for b := range h.behind {
		b.behind = nil
		if b.Len() > 0 {
			s.reopen(b)
		}
	}
}

// holdBack notes that a bucket was refused because of the hold.
func (h *hold) holdBack(b *bucket) {
	if h.behind == nil {
		h.behind = map[*bucket]bool{}
	}
	h.behind[b] = true
	b.behind = h
}

// binds reports whether the workload must leave the places of the hold alone: it
// comes after its head.
func (h *hold) binds(w *Waiting) bool {
	if h.cluster == "" || h.head == w {
		return false
	}
	if h.head.queue == w.queue {
		return w.queue.inLine(h.head, w) < 0
	}
	return before(h.head, w) < 0
}

// over reports whether a gang that starts now with that run time has ended when
// the head starts.
func (h *hold) over(now time.Time, runTime time.Duration) bool {
	return !h.start.IsZero() && runTime > 0 && !now.Add(runTime).After(h.start)
}

// kept is what of the held places must come from what is free now: what the
// gangs that the head waits for do not free there. It is a workload of a pod set
// for each node, so that a fleet can take it.
func (h *hold) kept() (*workload.Workload, []workload.Placement) {
	held := amountsOn(nil, h.variant.w, h.places)
	freed := map[string]resource.List{}
	for _, g := range h.after {
		freed = amountsOn(freed, g.Workload, g.Placements)
	}
	w := &workload.Workload{}
	var places []workload.Placement
	for _, p := range h.places {
		amounts, more := held[p.Node]
		if !more {
			continue // two pod sets on one node
		}
		delete(held, p.Node)
		needed := resource.List{}
		for name, amount := range amounts.Minus(freed[p.Node]) {
			if amount > 0 {
				needed[name] = amount
			}
		}
		if len(needed) > 0 {
			w.PodSets = append(w.PodSets, workload.PodSet{Name: p.Node, Count: 1, Template: workload.Template{Requests: needed}})
			places = append(places, workload.Placement{PodSet: p.Node, Node: p.Node, Pods: 1})
		}
	}
	return w, places
}

// amountsOn adds what a gang's places take of each node.
func amountsOn(sum map[string]resource.List, w *workload.Workload, places []workload.Placement) map[string]resource.List {
	if sum == nil {
		sum = map[string]resource.List{}
	}
	for _, p := range places {
		for i := range w.PodSets {
			if w.PodSets[i].Name == p.PodSet {
				sum[p.Node] = sum[p.Node].Plus(w.PodSets[i].Template.Requests.Times(int64(p.Pods)))
			}
		}
	}
	return sum
}

// bound reports whether a hold keeps places from the workload. The holds are
// brought up to date for that, but for its own.
func (d *decision) bound(w *Waiting) bool {
	d.reserveHeads(w)
	return slices.ContainsFunc(d.state.holds, func(h *hold) bool { return h.binds(w) })
}

// keep takes out of a cluster's fleet, within a what-if, what is held against
// the workload there, and returns the holds that it may not pass by its run
// time.
func (d *decision) keep(w *Waiting, cluster string) (against []*hold) {
	for _, h := range d.state.holds {
		if h.cluster == cluster && h.binds(w) && !h.over(d.now, w.RunTime) {
			d.state.fleets[cluster].Take(h.kept())
			against = append(against, h)
		}
	}
	return against
}

// pass looks for places that delay no head before the workload, on one cluster
// after the other. The caller knows that there are places otherwise.
func (d *decision) pass(w *Waiting, v *variant) (cluster string, places []workload.Placement, why *workload.Reason) {
	var delayed *hold
	for _, cluster := range d.state.clustersFor(w) {
		if _, none := v.verdicts[cluster]; none || d.state.fleets[cluster].Len() == 0 {
			continue
		}
		places, against := d.passOn(w, v, cluster)
		if places != nil {
			return cluster, places, nil
		}
		if delayed == nil && len(against) > 0 {
			delayed = against[0]
		}
	}
	if delayed == nil {
		return "", nil, &workload.Reason{Kind: workload.ReasonUnknown, Message: "the search for places beside what is held ended without an answer"}
	}
	delayed.holdBack(w.bucket)
	return "", nil, delayed.reasonBehind(w)
}

func (d *decision) passOn(w *Waiting, v *variant, cluster string) ([]workload.Placement, []*hold) {
	fleet := d.state.fleets[cluster]
	mark := fleet.Begin()
	against := d.keep(w, cluster)
	verdict, _ := d.solve(w.queue, fleet, v.w)
	fleet.Rollback(mark)
	if verdict.Outcome == placement.Fits {
		return verdict.Placements, nil
	}
	// The head may have other places as good as those held.
	if len(against) == 1 && against[0].drained.IsZero() {
		if places := d.around(against[0], w, v); places != nil {
			return places, nil
		}
	}
	return nil, against
}

// around places a gang anywhere and looks whether its head, which starts at a
// known time, still has places then. If so the hold moves there.
func (d *decision) around(h *hold, w *Waiting, v *variant) []workload.Placement {
	fleet := d.state.fleets[h.cluster]
	passing, _ := d.solve(w.queue, fleet, v.w)
	if passing.Outcome != placement.Fits {
		return nil
	}
	mark := fleet.Begin()
	for _, other := range d.state.holds {
		if other != h && other.cluster == h.cluster && other.binds(h.head) {
			fleet.Take(other.variant.w, other.places)
		}
	}
	for _, g := range h.after {
		fleet.Give(g.Workload, g.Placements)
	}
	fleet.Take(v.w, passing.Placements)
	moved, _ := d.solve(w.queue, fleet, h.variant.w) // for the one that passes
	fleet.Rollback(mark)
	if moved.Outcome != placement.Fits {
		return nil
	}
	h.places = moved.Placements
	d.noteMoved(h)
	d.moved = true
	return passing.Placements
}

// planned is the start of the head as data.
func (h *hold) planned() *workload.PlannedStart {
	return &workload.PlannedStart{
		Workload: h.head.Workload.ID, By: h.start, After: idsOf(h.after), Cluster: h.cluster, Nodes: nodesOf(h.places),
	}
}

func nodesOf(places []workload.Placement) []string {
	var nodes []string
	for _, p := range places {
		nodes = append(nodes, p.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// when says when the head starts.
func (h *hold) when(reader *workload.Workload) string {
	if h.start.IsZero() {
		return fmt.Sprintf("starts when %s, for how long that is has not been declared", ending(reader, h.after))
	}
	return fmt.Sprintf("starts by %s at the latest, when %s", h.start.UTC().Format("2006-01-02 15:04:05 MST"), ending(reader, h.after))
}

// about are the ids of other queues in the plan for the head.
func (h *hold) about(reader *workload.Workload) []workload.ID {
	return foreign(reader, append(workloadsOf(h.after), h.head.Workload)...)
}

// reasonBehind is why a workload waits that would delay the head.
func (h *hold) reasonBehind(w *Waiting) *workload.Reason {
	where := "the head of another queue"
	if w.Workload.Queue == h.head.Workload.Queue {
		where = fmt.Sprintf("the head of queue %q (%s)", h.head.queue.name, quota.Backfill)
	}
	return &workload.Reason{
		Kind:    workload.ReasonBehindHead,
		Message: fmt.Sprintf("it has places, but would delay %s, %s, which %s", nameFor(w.Workload, h.head.Workload), where, h.when(w.Workload)),
		Start:   h.planned(), Foreign: h.about(w.Workload),
	}
}

// reasonHead completes the reason of a head by what is held for it.
func (h *hold) reasonHead(why *workload.Reason) *workload.Reason {
	with := *why
	with.Message += fmt.Sprintf("; places on %d nodes of cluster %s are held for it, and it %s", len(nodesOf(h.places)), h.cluster, h.when(h.head.Workload))
	with.Start, with.Foreign = h.planned(), h.about(h.head.Workload)
	return &with
}
