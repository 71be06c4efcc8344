package placement

// Mark is a state of a fleet to which Rollback returns.
type Mark int

// change is what was known of a node before it changed.
type change struct {
	name string
	old  *node // nil: nothing
}

// Begin starts a what-if: Rollback with the mark undoes every change since.
// Marks nest. Begin costs nothing, and Rollback as much as was changed.
func (f *Fleet) Begin() Mark {
	f.marks = append(f.marks, len(f.journal))
	return Mark(len(f.marks) - 1)
}

// Rollback returns to the state at the mark, and ends it and all marks set after
// it.
func (f *Fleet) Rollback(m Mark) {
	undone := f.journal[f.marks[m]:]
	f.journal, f.marks = f.journal[:f.marks[m]], f.marks[:m]
	grown := f.grown
	for i := len(undone) - 1; i >= 0; i-- {
		f.put(undone[i].name, undone[i].old)
	}
	f.grown = grown
}

// note remembers what a change replaces while a what-if is going on.
func (f *Fleet) note(name string, old *node) {
	if len(f.marks) > 0 {
		f.journal = append(f.journal, change{name, old})
	}
}
