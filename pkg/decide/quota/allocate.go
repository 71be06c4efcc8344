package quota

// undo is a value of a usage before a change.
type undo struct {
	node  *node
	index int
	old   int64
}

// Allocate adds charges to the usage of a queue. Usage may exceed quota, because quota
// may have been reduced since an admission.
func (q *Queue) Allocate(charges []Charge) {
	q.noteUsageChange()
	for _, c := range charges {
		q.tree.shift(q.node, q.tree.grown(c.FlavorResource), c.Amount)
	}
}

// Release reverts Allocate.
func (q *Queue) Release(charges []Charge) {
	q.noteUsageChange()
	for _, c := range charges {
		q.tree.shift(q.node, q.tree.grown(c.FlavorResource), -c.Amount)
	}
}

// grown returns the index of a pair, and adds one that is new: of a flavor that is no
// longer configured, or not bounded by quota.
func (t *Tree) grown(fr FlavorResource) int {
	if i, known := t.index[fr]; known {
		return i
	}
	i := t.indexOf(fr)
	for _, q := range t.sorted {
		for n := q.node; n != nil && len(n.usage) <= i; n = n.parent {
			n.subtree, n.usage = append(n.subtree, 0), append(n.usage, 0)
		}
	}
	for _, n := range t.cohorts {
		for len(n.usage) <= i {
			n.subtree, n.usage = append(n.subtree, 0), append(n.usage, 0)
		}
	}
	return i
}

func (t *Tree) shift(n *node, i int, by int64) {
	before := n.overflow(i)
	if t.savepoints > 0 {
		t.undoLog = append(t.undoLog, undo{n, i, n.usage[i]})
	}
	n.usage[i] = add(n.usage[i], by)
	if after := n.overflow(i); n.parent != nil && after != before {
		t.shift(n.parent, i, after-before)
	}
}

// FitsAlone reports whether the queue could use the charges with nothing of its own in use,
// while other queues keep what they use.
func (q *Queue) FitsAlone(charges []Charge) bool {
	before := q.tree.Begin()
	defer q.tree.Rollback(before)
	for _, c := range charges {
		if i, declared := q.declares(c.FlavorResource); declared {
			q.tree.shift(q.node, i, -q.node.usage[i])
		}
	}
	return q.Fits(charges)
}

// Savepoint is a state of the usage to which Rollback returns.
type Savepoint int

// Begin starts a what-if that Rollback undoes. Savepoints nest.
func (t *Tree) Begin() Savepoint {
	t.savepoints++
	return Savepoint(len(t.undoLog))
}

// Rollback undoes all changes of usage since Begin.
func (t *Tree) Rollback(m Savepoint) {
	for i := len(t.undoLog) - 1; i >= int(m); i-- {
		u := t.undoLog[i]
		u.node.usage[u.index] = u.old
	}
	t.undoLog = t.undoLog[:m]
	t.savepoints--
}
