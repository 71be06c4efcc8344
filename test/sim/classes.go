package sim

import "math/rand/v2"

// class is something that a share of the seeds has beside its faults.
type class uint64

// Classes, each of its own source of chance, so that a seed may be of several.
const (
	classAway    class = 11 + iota // something is away for up to an hour
	classRefused                   // the database refuses workloads for good
	classHostile                   // others forge, lie and submit what is absurd
	classOlder                     // Postgres is restored to an older state
	// classEarly: gangs start early, but for those of the strict queue, and a ResourceQuota
	// has room for few pods now and then. In all other seeds gangs start whole.
	classEarly class = 19
	// classOperated: operators hold, resume, requeue and move workloads, change their
	// priorities, and hold queues.
	classOperated class = 20
	// classRepeated: submitters repeat what was refused.
	classRepeated class = 21
	classBare     class = 22 // streams lose their files
	classFull     class = 23 // the disk of NATS is full
)

var classes = []class{classAway, classRefused, classHostile, classOlder, classEarly, classOperated, classRepeated, classBare, classFull}

// firstOfClasses is the first seed that may be of a class: the worlds of those
// before it are as they were.
const firstOfClasses = 1000

// firstOfBoth is the first seed in which a database that refuses workloads may be restored to
// an older state, too.
const firstOfBoth = 11000

// is reports whether the run is of a class: so is one seed of four. Before firstOfBoth a database
// that refuses workloads is not restored to an older state. In neither case is what was submitted
// known for sure, so that submissions with the ids of others are not drawn.
func (w *World) is(c class) bool {
	if w.scaled() && (c == classOlder || c == classRefused) { // requests of lost time may be there
		return false
	}
	switch {
	case c == classOlder && w.Seed < firstOfBoth && w.is(classRefused), c == classRepeated && (w.is(classRefused) || w.is(classOlder)):
		return false
	}
	return w.Seed >= firstOfClasses && rand.New(rand.NewPCG(w.Seed, uint64(c))).IntN(4) == 0
}
