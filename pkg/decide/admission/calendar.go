package admission

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// A reservation keeps nodes from gangs that it is not for. Such a gang gets no places there
// unless it is declared to end before the reservation begins. That holds for every strategy,
// for gangs that others are evicted for, and for the places that a head will have.

// coveredKey names the nodes of a reservation in a cluster.
type coveredKey struct{ reservation, cluster string }

// coveredNodes returns the nodes of a cluster that a reservation covers.
func (d *decision) coveredNodes(r *quota.Reservation, cluster string) []string {
	fleet := d.state.fleets[cluster]
	if fleet == nil || !r.In(cluster) {
		return nil
	}
	key := coveredKey{r.Name, cluster}
	nodes, known := d.covered[key]
	if !known {
		if d.covered == nil {
			d.covered = map[coveredKey][]string{}
		}
		nodes = reservedOn(fleet, r)
		d.covered[key] = nodes
	}
	return nodes
}

func reservedOn(fleet *placement.Fleet, r *quota.Reservation) []string {
	covers := r.Covering()
	return fleet.Where(func(n *capacity.Node) bool { return covers(n.Name, n.Labels) })
}

// mustSpare reports whether any reservation keeps nodes from the workload if it starts now.
func (d *decision) mustSpare(w *Waiting) bool {
	all := d.state.tree.Reservations()
	return slices.ContainsFunc(all, func(r quota.Reservation) bool {
		return r.Conflicts(d.now, w.RunTime) && !r.For(w.queue.name, w.Workload)
	})
}

// getsNodesLater reports whether a reservation of nodes for the workload is still to begin.
func (d *decision) getsNodesLater(w *Waiting) bool {
	all := d.state.tree.Reservations()
	return slices.ContainsFunc(all, func(r quota.Reservation) bool {
		return d.now.Before(r.From) && r.For(w.queue.name, w.Workload)
	})
}

// spare closes, within a what-if on a cluster, the nodes that the workload must leave to
// others if it starts at that time, and allocates what is kept from it. It returns the
// reservations that keep any from it.
func (d *decision) spare(w *Waiting, cluster string, at time.Time) []*quota.Reservation {
	d.allocateKept(w, cluster, at)
	return d.close(w, cluster, func(r *quota.Reservation) bool { return r.Conflicts(at, w.RunTime) })
}

// spareAll closes all nodes that are reserved for others, now or later.
func (d *decision) spareAll(w *Waiting, cluster string) {
	d.close(w, cluster, func(r *quota.Reservation) bool { return d.now.Before(r.Until) })
}

func (d *decision) close(w *Waiting, cluster string, those func(*quota.Reservation) bool) []*quota.Reservation {
	var closed []*quota.Reservation
	all := d.state.tree.Reservations()
	for i := range all {
		r := &all[i]
		if !those(r) || r.For(w.queue.name, w.Workload) {
			continue
		}
		if nodes := d.coveredNodes(r, cluster); len(nodes) > 0 {
			d.state.fleets[cluster].Close(nodes)
			closed = append(closed, r)
		}
	}
	return closed
}

// ownNodes returns the nodes of a cluster that are reserved for the workload now: there it
// comes before every head.
func (d *decision) ownNodes(w *Waiting, cluster string) map[string]bool {
	var own map[string]bool
	all := d.state.tree.Reservations()
	for i := range all {
		r := &all[i]
		if d.now.Before(r.From) || !d.now.Before(r.Until) || !r.For(w.queue.name, w.Workload) {
			continue
		}
		if own == nil {
			own = map[string]bool{}
		}
		for _, node := range d.coveredNodes(r, cluster) {
			own[node] = true
		}
	}
	return own
}

// lastReserved returns when the last reservation ends that keeps nodes of the cluster from
// the workload, now or later; zero for none.
func (d *decision) lastReserved(w *Waiting, cluster string) (last time.Time) {
	all := d.state.tree.Reservations()
	for i := range all {
		r := &all[i]
		if r.Until.After(last) && r.Until.After(d.now) && !r.For(w.queue.name, w.Workload) && len(d.coveredNodes(r, cluster)) > 0 {
			last = r.Until
		}
	}
	return last
}

// solveSparing is solve on a cluster for a gang that starts now: without what is reserved or kept
// for others. The allowance of the payer pays for it.
func (d *decision) solveSparing(payer *queue, w *Waiting, cluster string, placed *workload.Workload) (placement.Verdict, bool) {
	fleet := d.state.fleet(cluster)
	if len(d.state.tree.Reservations()) == 0 && len(d.keptParts) == 0 {
		return d.solve(payer, fleet, placed)
	}
	savepoint := fleet.Begin()
	defer fleet.Rollback(savepoint)
	d.spare(w, cluster, d.now)
	return d.solve(payer, fleet, placed)
}

// reasonReserved returns why a workload waits that fits, but on nodes that are reserved.
func (d *decision) reasonReserved(w *Waiting, cluster string, r *quota.Reservation) *workload.Reason {
	declared := "it declares no run time"
	if w.RunTime > 0 {
		declared = fmt.Sprintf("its declared run time is %s", w.RunTime)
	}
	return &workload.Reason{
		Kind: workload.ReasonReserved,
		Message: fmt.Sprintf("the workload fits only on nodes that are reserved before it ends (%s): in cluster %s %s",
			declared, cluster, r.Message(d.coveredNodes(r, cluster))),
	}
}

// closeReserved closes, within a what-if, the nodes that a started gang must leave to others
// until it ends.
func (s *State) closeReserved(g *Started, fleet *placement.Fleet, now time.Time) {
	all := s.tree.Reservations()
	for i := range all {
		r := &all[i]
		overdue := g.RunTime > 0 && !now.Before(g.Admitted.Add(g.RunTime)) // it may run without end
		if !now.Before(r.Until) || !r.In(g.Cluster) || r.For(g.queue.name, g.Workload) || !overdue && !r.Conflicts(g.Admitted, g.RunTime) {
			continue
		}
		fleet.Close(reservedOn(fleet, r))
	}
}

// mustClear reports whether a gang has to leave nodes whose reservation has begun.
func (s *State) mustClear(g *Started, r *quota.Reservation, now time.Time) bool {
	if !r.Evict || now.Before(r.From) || !now.Before(r.Until) || !r.In(g.Cluster) || g.Terminating || g.Frozen || r.For(g.queue.name, g.Workload) {
		return false
	}
	fleet := s.fleets[g.Cluster]
	return fleet != nil && slices.ContainsFunc(g.Placements, func(p workload.Placement) bool {
		n, there := fleet.Node(p.Node)
		return there && r.Covers(n.Name, n.Labels)
	})
}

// mustDrainReserved reports whether a gang has to leave reserved nodes.
func (s *State) mustDrainReserved(now time.Time) bool {
	all := s.tree.Reservations()
	for i := range all {
		if !all[i].Evict || now.Before(all[i].From) || !now.Before(all[i].Until) {
			continue
		}
		for _, g := range s.started {
			if s.mustClear(g, &all[i], now) {
				return true
			}
		}
	}
	return false
}

// drainReserved evicts gangs from nodes whose reservation has begun, by falling priority,
// then by submission.
func (d *decision) drainReserved() {
	all := d.state.tree.Reservations()
	for i := range all {
		r := &all[i]
		if !r.Evict || d.now.Before(r.From) || !d.now.Before(r.Until) {
			continue
		}
		var gangs []*Started
		for _, g := range d.state.started {
			if d.state.mustClear(g, r, d.now) {
				gangs = append(gangs, g)
			}
		}
		slices.SortFunc(gangs, func(a, b *Started) int {
			return cmp.Or(cmp.Compare(b.Workload.Priority, a.Workload.Priority), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
		})
		for _, g := range gangs {
			d.evict(g, workload.Reason{Kind: workload.ReasonDrained, Message: r.Message(d.coveredNodes(r, g.Cluster))})
		}
	}
}
