// Package roster finds a great many things by their names, at little cost to Go's
// collector of garbage.
//
// A map of a million names to pointers has each round of the collector follow them in
// the order of the map, which is all over the memory; a round with a roster instead
// costs hardly more than one without either (BenchmarkCollect). The map of a roster
// has no pointers: it leads from the hash of a name to a place in a list, and the list
// is in the order in which things came, which is mostly that of the memory.
//
// Its hash is one of chance, so that nobody can choose names that share one; nothing
// that can be seen of a roster depends on it.
//
// It is not for few things, for which a map does, and not for more than two billion.
package roster

import (
	"hash/maphash"
	"iter"
)

// Roster is a set of things with different names. A thing must keep its name while it
// is in it. Its methods must not be called concurrently.
type Roster[Name ~string, Thing any] struct {
	nameOf func(*Thing) Name
	hash   func(Name) uint64
	places map[uint64]int32
	list   []member[Thing]
	free   []int32 // places where nothing is
}

// member is a thing in its place; without a thing the place is free.
type member[Thing any] struct {
	thing *Thing
	// next has the same hash; none for nothing.
	next int32
}

const none = -1

// New returns an empty roster of things whose names the function tells, with room for
// about so many.
func New[Name ~string, Thing any](expected int, nameOf func(*Thing) Name) *Roster[Name, Thing] {
	seed := maphash.MakeSeed()
	return &Roster[Name, Thing]{
		nameOf: nameOf, hash: func(name Name) uint64 { return maphash.String(seed, string(name)) },
		places: make(map[uint64]int32, expected), list: make([]member[Thing], 0, expected),
	}
}

// Len is how many things there are.
func (r *Roster[Name, Thing]) Len() int { return len(r.list) - len(r.free) }

// Get returns the thing of that name; nil when there is none.
func (r *Roster[Name, Thing]) Get(name Name) *Thing {
	if place, _ := r.find(name); place != none {
		return r.list[place].thing
	}
	return nil
}

// Has reports whether this very thing is in the roster, and not another one of its
// name.
func (r *Roster[Name, Thing]) Has(thing *Thing) bool { return r.Get(r.nameOf(thing)) == thing }

// Put adds a thing, in the place of another one of its name if there is one.
func (r *Roster[Name, Thing]) Put(thing *Thing) {
	name := r.nameOf(thing)
	if place, _ := r.find(name); place != none {
		r.list[place].thing = thing
		return
	}
	hash := r.hash(name)
	next, shared := r.places[hash]
	if !shared {
		next = none
	}
	added := member[Thing]{thing, next}
	if last := len(r.free) - 1; last >= 0 {
		r.places[hash] = r.free[last]
		r.list[r.free[last]] = added
		r.free = r.free[:last]
		return
	}
	r.places[hash] = int32(len(r.list))
	r.list = append(r.list, added)
}

// Delete takes the thing of that name out, if there is one.
func (r *Roster[Name, Thing]) Delete(name Name) {
	place, before := r.find(name)
	if place == none {
		return
	}
	switch next := r.list[place].next; {
	case before != none:
		r.list[before].next = next
	case next != none:
		r.places[r.hash(name)] = next
	default:
		delete(r.places, r.hash(name))
	}
	r.list[place] = member[Thing]{}
	r.free = append(r.free, place)
}

// All goes over all things. Which of those are gone over that are put in or taken out
// meanwhile is not said; each is once at most.
func (r *Roster[Name, Thing]) All() iter.Seq[*Thing] {
	return func(yield func(*Thing) bool) {
		for _, m := range r.list {
			if m.thing != nil && !yield(m.thing) {
				return
			}
		}
	}
}

// find returns the place of a name and the one before it of the same hash, or none.
func (r *Roster[Name, Thing]) find(name Name) (place, before int32) {
	place, there := r.places[r.hash(name)]
	if !there {
		return none, none
	}
	for before = none; place != none; before, place = place, r.list[place].next {
		if r.nameOf(r.list[place].thing) == name {
			return place, before
		}
	}
	return none, none
}
