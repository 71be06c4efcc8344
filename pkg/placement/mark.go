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

// fork is a what-if that changes demand and what is parked.
type fork struct {
	marks  int // how many were set with it
	demand demand
	parked parking
	sights []sight // of the nodes that were dirty
}

// Fork is Begin of a what-if that decides as the fleet itself would: what comes
// and goes in it is demand, too, but for what-ifs inside it, and it parks and
// wakes on its own. It costs as much as there are kinds of pods that run or wait,
// and shapes that are parked.
func (f *Fleet) Fork() Mark {
	m := f.Begin()
	was := fork{marks: len(f.marks), demand: f.demand, parked: f.parked}
	for _, n := range f.parked.dirty {
		was.sights = append(was.sights, n.sight)
	}
	f.forks = append(f.forks, was)
	f.demand, f.parked = f.demand.clone(), f.parked.clone()
	return m
}

// join ends the last fork, whose changes of nodes are undone.
func (f *Fleet) join() {
	last := len(f.forks) - 1
	was := f.forks[last]
	f.forks = f.forks[:last]
	for _, n := range f.parked.dirty {
		n.sight = sight{}
	}
	for i, n := range was.parked.dirty {
		n.sight = was.sights[i]
	}
	f.demand, f.parked = was.demand, was.parked
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
	for fork := f.forked(); fork > int(m); fork = f.forked() {
		f.undo(Mark(fork - 1))
		f.join()
	}
	if len(f.marks) > int(m) {
		f.undo(m)
	}
}

// undo is Rollback to a mark after which nothing forks.
func (f *Fleet) undo(m Mark) {
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
