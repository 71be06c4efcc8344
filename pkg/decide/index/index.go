// Package index maps IDs to values in a pointer-free map, so that the garbage collector
// does not scan it.
//
// The collector follows the pointers of a map in the order of its buckets, so each cycle
// over a map of a million pointers touches memory at random. The map here leads from the
// hash of an ID to a place in a list, and the list is in the order of insertion, which
// is mostly that of memory; a cycle costs hardly more than one without the index
// (BenchmarkCollect).
//
// The hash has a random seed, so a client cannot choose IDs that collide. Nothing that
// the index returns depends on it.
//
// It is not for few values, for which a map is enough, and not for more than two billion.
package index

import (
	"hash/maphash"
	"iter"
)

// Index is a set of values with different names. A value must keep its name while it is
// in the index. The methods must not be called concurrently.
type Index[Name ~string, Value any] struct {
	nameOf func(*Value) Name
	hash   func(Name) uint64
	places map[uint64]int32
	list   []member[Value]
	free   []int32 // unused places
}

// member is a value in its place; without a value the place is free.
type member[Value any] struct {
	value *Value
	// next is the place of the next value with the same hash, or none.
	next int32
}

const none = -1

// New returns an empty index of values whose names the function returns, with room for
// about the expected number.
func New[Name ~string, Value any](expected int, nameOf func(*Value) Name) *Index[Name, Value] {
	seed := maphash.MakeSeed()
	return &Index[Name, Value]{
		nameOf: nameOf, hash: func(name Name) uint64 { return maphash.String(seed, string(name)) },
		places: make(map[uint64]int32, expected), list: make([]member[Value], 0, expected),
	}
}

// Len returns the number of values.
func (x *Index[Name, Value]) Len() int { return len(x.list) - len(x.free) }

// Get returns the value of that name; nil when there is none.
func (x *Index[Name, Value]) Get(name Name) *Value {
	if place, _ := x.find(name); place != none {
		return x.list[place].value
	}
	return nil
}

// Has reports whether this very value is in the index, not another one of its name.
func (x *Index[Name, Value]) Has(value *Value) bool { return x.Get(x.nameOf(value)) == value }

// Put adds a value, or replaces the one of its name.
func (x *Index[Name, Value]) Put(value *Value) {
	name := x.nameOf(value)
	if place, _ := x.find(name); place != none {
		x.list[place].value = value
		return
	}
	hash := x.hash(name)
	next, shared := x.places[hash]
	if !shared {
		next = none
	}
	added := member[Value]{value, next}
	if last := len(x.free) - 1; last >= 0 {
		x.places[hash] = x.free[last]
		x.list[x.free[last]] = added
		x.free = x.free[:last]
		return
	}
	x.places[hash] = int32(len(x.list))
	x.list = append(x.list, added)
}

// Delete removes the value of that name, if there is one.
func (x *Index[Name, Value]) Delete(name Name) {
	place, before := x.find(name)
	if place == none {
		return
	}
	switch next := x.list[place].next; {
	case before != none:
		x.list[before].next = next
	case next != none:
		x.places[x.hash(name)] = next
	default:
		delete(x.places, x.hash(name))
	}
	x.list[place] = member[Value]{}
	x.free = append(x.free, place)
}

// All returns an iterator over all values. It may or may not yield values that are added
// or deleted during the iteration, each at most once.
func (x *Index[Name, Value]) All() iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		for _, m := range x.list {
			if m.value != nil && !yield(m.value) {
				return
			}
		}
	}
}

// find returns the place of a name and the one before it of the same hash, or none.
func (x *Index[Name, Value]) find(name Name) (place, before int32) {
	place, there := x.places[x.hash(name)]
	if !there {
		return none, none
	}
	for before = none; place != none; before, place = place, x.list[place].next {
		if x.nameOf(x.list[place].value) == name {
			return place, before
		}
	}
	return none, none
}
