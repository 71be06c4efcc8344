package placement

// Savepoint is a state of a fleet to which Rollback returns.
type Savepoint int

// Begin starts a what-if: Rollback to the savepoint undoes every change since.
// Savepoints nest. Begin costs nothing, and Rollback as much as was changed.
func (f *Fleet) Begin() Savepoint {
	f.savepoints = append(f.savepoints, len(f.undoLog))
	return Savepoint(len(f.savepoints) - 1)
}

// fork is a what-if with its own demand and unschedulable set; it has those to go back
// to.
type fork struct {
	savepoints    int // how many were set with it
	demand        demand
	unschedulable unschedulable
	hints         []requeueHint // of the nodes that were dirty
}

// Fork begins, as Begin does, a what-if that decides as the fleet itself would: allocations in it,
// except those of what-ifs inside it, change demand, and it has its own unschedulable
// set. The cost is linear in the kinds of pods that run or wait and in the size of the
// set.
func (f *Fleet) Fork() Savepoint {
	m := f.Begin()
	was := fork{savepoints: len(f.savepoints), demand: f.demand, unschedulable: f.unschedulable}
	for _, n := range f.unschedulable.dirty {
		was.hints = append(was.hints, n.hint)
	}
	f.forks = append(f.forks, was)
	f.demand, f.unschedulable = f.demand.clone(), f.unschedulable.clone()
	return m
}

// join ends the last fork, whose changes of nodes are undone.
func (f *Fleet) join() {
	last := len(f.forks) - 1
	was := f.forks[last]
	f.forks = f.forks[:last]
	for _, n := range f.unschedulable.dirty {
		n.hint = requeueHint{}
	}
	for i, n := range was.unschedulable.dirty {
		n.hint = was.hints[i]
	}
	f.demand, f.unschedulable = was.demand, was.unschedulable
}

// forked returns the number of savepoints up to the last fork.
func (f *Fleet) forked() int {
	if len(f.forks) == 0 {
		return 0
	}
	return f.forks[len(f.forks)-1].savepoints
}

// Rollback returns to a savepoint, and ends it and all later ones.
func (f *Fleet) Rollback(m Savepoint) {
	for fork := f.forked(); fork > int(m); fork = f.forked() {
		f.undo(Savepoint(fork - 1))
		f.join()
	}
	if len(f.savepoints) > int(m) {
		f.undo(m)
	}
}

// undo is Rollback to a savepoint without a later fork.
func (f *Fleet) undo(m Savepoint) {
	undone := f.undoLog[f.savepoints[m]:]
	f.undoLog, f.savepoints = f.undoLog[:f.savepoints[m]], f.savepoints[:m]
	for i := len(undone) - 1; i >= 0; i-- {
		f.restore(undone[i])
	}
	clear(undone)
}

func (f *Fleet) restore(c change) {
	n := c.node
	f.unschedulable.recordBefore(n)
	was := *n
	*n = c.was
	n.filing, n.hint = was.filing, was.hint
	f.offer(n, was)
	if !c.known {
		f.forget(n)
	}
}
