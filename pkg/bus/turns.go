package bus

import (
	"cmp"
	"slices"
)

// turns orders the subjects that wait for a lane by how long they have waited. Order by
// name would keep the last names out for ever once more subjects wait than two rounds of
// lanes have room for: those that were read would come back before them. It remembers the
// waiting subjects only. The zero value is ready for use.
type turns struct {
	since map[string]uint64 // by subject: the look in which it began to wait
	look  uint64
}

// line takes the subjects that wait at this look and returns them in the order of their
// turns: first those that have waited for longest, and by name among those that came at
// the same look.
func (t *turns) line(waiting []string) []string {
	t.look++
	since := make(map[string]uint64, len(waiting))
	for _, subject := range waiting {
		began, waited := t.since[subject]
		if !waited {
			began = t.look
		}
		since[subject] = began
	}
	t.since = since
	return slices.SortedFunc(slices.Values(waiting), func(a, b string) int {
		return cmp.Or(cmp.Compare(since[a], since[b]), cmp.Compare(a, b))
	})
}
