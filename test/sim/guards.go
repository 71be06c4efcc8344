package sim

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// The guards of the schema, written from migrations/*.sql. They judge statement by
// statement, in the order in which the ledger is written: nodes, what is given
// back, what ends, what is taken. Nothing here is shared with the store.

// usageKey names a row of the quota ledger.
type usageKey struct {
	scope, flavor string
	name          resource.Name
}

// hold is a reservation of the ledger.
type hold struct {
	node     admission.NodeKey
	set      string
	pods     int64
	requests resource.List
	charges  *state.Charges
}

// sums are the node ledger and the quota ledger, with what they were when the
// transaction began: what is given back may be taken again.
type sums struct {
	reserved, hadReserved map[admission.NodeKey]resource.List
	used, hadUsed         map[usageKey]int64
}

func (s *sums) add(h hold, sign int64) {
	s.reserved[h.node] = s.reserved[h.node].Plus(h.requests.Times(sign * h.pods))
	if h.charges == nil {
		return
	}
	for _, scope := range h.charges.Scopes {
		for name, flavor := range h.charges.Flavors {
			s.used[usageKey{scope, flavor, name}] += sign * h.pods * h.requests[name]
		}
	}
}

// judgement is a transaction as the guards see it.
type judgement struct {
	l     *ledger
	c     state.Changes
	nodes map[admission.NodeKey]state.NodeRow
	holds map[workload.ID][]hold
	sums  sums
}

// guard returns which guard refuses the changes, and why; nil for none.
func (l *ledger) guard(c state.Changes) error {
	j := &judgement{l: l, c: c, nodes: maps.Clone(l.nodes), holds: maps.Clone(l.holds)}
	j.sums = sums{reserved: map[admission.NodeKey]resource.List{}, used: map[usageKey]int64{}}
	for _, holds := range l.holds {
		for _, h := range holds {
			j.sums.add(h, 1)
		}
	}
	j.sums.hadReserved, j.sums.hadUsed = maps.Clone(j.sums.reserved), maps.Clone(j.sums.used)
	for _, n := range c.Nodes {
		j.nodes[admission.NodeKey{Cluster: n.Cluster, Name: n.Name}] = n
	}
	steps := []func() error{j.release, j.reserve, j.whole, j.unique, j.shaped}
	if l.w.Bug == BugTakenFirst {
		steps = append([]func() error{j.reserveFirst}, steps...)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	l.pending = j.holds
	return nil
}

// release frees the places of gangs that end and of gangs that get other places.
func (j *judgement) release() error {
	back := map[workload.ID]bool{}
	for _, id := range j.c.Freed {
		back[id] = true
	}
	for _, r := range j.c.Replaced {
		back[r.Workload] = true
	}
	for id := range back {
		for _, h := range j.l.holds[id] {
			j.sums.add(h, -1)
		}
		if !j.reserves(id) {
			delete(j.holds, id)
		}
	}
	return nil
}

func (j *judgement) reserves(id workload.ID) bool {
	of := func(r state.Reservation) bool { return r.Workload == id }
	return slices.ContainsFunc(j.c.Reserved, of) || slices.ContainsFunc(j.c.Replaced, of)
}

// reserveFirst is a planted bug: the new places of started gangs are charged while
// the old ones are.
func (j *judgement) reserveFirst() error {
	for _, r := range j.c.Replaced {
		h := hold{admission.NodeKey{Cluster: r.Cluster, Name: r.Node}, r.PodSet, int64(r.Pods), r.Requests, r.Charges}
		if slices.ContainsFunc(j.l.holds[r.Workload], func(old hold) bool { return old.node == h.node && old.set == h.set }) {
			continue // it stays
		}
		j.sums.add(h, 1)
		if err := j.room(h); err != nil {
			return err
		}
		j.sums.add(h, -1)
	}
	return nil
}

// reserve inserts all new reservations, of which each has a node and a quota to be
// charged to.
func (j *judgement) reserve() error {
	taken := map[workload.ID][]hold{}
	for _, r := range slices.Concat(j.c.Reserved, j.c.Replaced) {
		h := hold{admission.NodeKey{Cluster: r.Cluster, Name: r.Node}, r.PodSet, int64(r.Pods), r.Requests, r.Charges}
		taken[r.Workload] = append(taken[r.Workload], h)
		j.sums.add(h, 1)
	}
	for id, holds := range taken {
		j.holds[id] = holds
		for _, h := range holds {
			if err := j.room(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// room is the guard against over-commit and over-use.
func (j *judgement) room(h hold) error {
	n, known := j.nodes[h.node]
	for _, name := range h.requests.Names() {
		reserved := j.sums.reserved[h.node][name]
		if reserved > j.sums.hadReserved[h.node][name] && (!known || reserved+n.Used[name] > n.Allocatable[name]) {
			return fmt.Errorf("no_overcommit: %d of %s would be reserved on %s beside %d used, and there are %d",
				reserved, name, h.node.Name, n.Used[name], n.Allocatable[name])
		}
	}
	if h.charges == nil {
		return nil
	}
	for _, scope := range h.charges.Scopes {
		for name, flavor := range h.charges.Flavors {
			key := usageKey{scope, flavor, name}
			bound, there := j.l.bounds[key]
			if used := j.sums.used[key]; !there || used > j.sums.hadUsed[key] && used > bound {
				return fmt.Errorf("no_overuse: %d of %s would be used of %s, and there are %d", used, name, scope, bound)
			}
		}
	}
	return nil
}

// whole is the guard against gangs that have a part of their places.
func (j *judgement) whole() error {
	for _, r := range j.records() {
		placed := int64(0)
		for _, h := range j.holds[r.ID] {
			placed += h.pods
		}
		want := int64(0)
		if r.Holding {
			want = int64(r.Pods())
		}
		if placed != want {
			return fmt.Errorf("all_or_nothing: %s is %s with %d of %d pods placed", j.l.w.submits.nameOf(r.ID), r.Phase, placed, want)
		}
	}
	return nil
}

// records are the workloads as the changes leave them, ended ones too.
func (j *judgement) records() (records []workload.Record) {
	for _, a := range j.c.Added {
		records = append(records, a.Record)
	}
	return append(records, j.c.Updated...)
}

// unique is the guard against two live workloads of one object, which is of its home.
func (j *judgement) unique() error {
	names, ended := map[string]workload.ID{}, map[workload.ID]bool{}
	for _, r := range j.records() {
		ended[r.ID] = r.Phase.Final() && !r.Holding
	}
	check := func(r workload.Record) error {
		name := r.Namespace + "/" + r.Kind + "/" + r.Name + " of " + r.Home()
		if other, taken := names[name]; taken && other != r.ID {
			return fmt.Errorf("workloads_live_object: %s is there twice", name)
		}
		names[name] = r.ID
		return nil
	}
	for id, r := range j.l.live {
		if !ended[id] {
			if err := check(r.Record); err != nil {
				return err
			}
		}
	}
	for _, a := range j.c.Added {
		if !ended[a.ID] {
			if err := check(a.Record); err != nil {
				return err
			}
		}
	}
	return nil
}

// shaped is the guard that each live workload has its pod sets.
func (j *judgement) shaped() error {
	for _, r := range j.records() {
		if live := !r.Phase.Final() || r.Holding; live && !j.l.shapes[shapeOf(r)] {
			return fmt.Errorf("all_or_nothing: the pod sets of %s are not there", j.l.w.submits.nameOf(r.ID))
		}
	}
	return nil
}
