package placement

// Mark is a state of a fleet to which Rollback returns.
type Mark int

// change is what a node was before it changed.
type change struct {
	node  *node
	was   node
	known bool
}

// Begin starts a what-if: Rollback with the mark undoes every change since.
// Marks nest. Begin costs nothing, and Rollback as much as was changed.
func (f *Fleet) Begin() Mark {
	f.marks = append(f.marks, len(f.journal))
	return Mark(len(f.marks) - 1)
}

// fork is a what-if that changes demand.
type fork struct {
	marks int    // how many were set with it
	was   demand // before it
}

// Fork is Begin of a what-if that decides as the fleet itself would: what comes
// and goes in it is demand, too, but for what-ifs inside it. It costs as much as
// there are kinds of pods that run or wait.
func (f *Fleet) Fork() Mark {
	m := f.Begin()
	f.forks = append(f.forks, fork{len(f.marks), f.demand})
	f.demand = f.demand.clone()
	return m
}

// forked is how many marks there are up to the last fork.
func (f *Fleet) forked() int {
	if len(f.forks) == 0 {
		return 0
	}
	return f.forks[len(f.forks)-1].marks
}

// Rollback returns to the state at the mark, and ends it and all marks set after
// it.
func (f *Fleet) Rollback(m Mark) {
	for f.forked() > int(m) {
		last := len(f.forks) - 1
		f.demand, f.forks = f.forks[last].was, f.forks[:last]
	}
	undone := f.journal[f.marks[m]:]
	f.journal, f.marks = f.journal[:f.marks[m]], f.marks[:m]
	for i := len(undone) - 1; i >= 0; i-- {
		f.restore(undone[i])
	}
	clear(undone)
}

func (f *Fleet) restore(c change) {
	n := c.node
	f.parked.leaving(n)
	f.pull(n)
	was, sight := *n, n.sight
	*n = c.was
	n.group, n.sight = nil, sight
	f.offer(n, was)
	if !c.known {
		f.forget(n)
	}
}

// note remembers what a change replaces while a what-if is going on.
func (f *Fleet) note(n *node, was node, known bool) {
	if len(f.marks) > 0 {
		f.journal = append(f.journal, change{n, was, known})
	}
}
