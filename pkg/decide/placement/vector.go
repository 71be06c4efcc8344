package placement

import (
	"cmp"
	"math"
	"slices"

	"muster.dev/muster/pkg/spec/resource"
)

// vector is amounts of resources by column. Vectors are never changed once
// made; columns beyond its end are zero.
type vector []int64

func (v vector) at(column int) int64 {
	if column < len(v) {
		return v[column]
	}
	return 0
}

// plus returns v + times x other, saturating.
func (v vector) plus(other vector, times int64) vector {
	sum := make(vector, max(len(v), len(other)))
	for i := range sum {
		sum[i] = add(v.at(i), multiply(other.at(i), times))
	}
	return sum
}

// unused returns offered - taken - extra, saturating.
func unused(offered, taken, extra vector) vector {
	free := make(vector, max(len(offered), len(taken), len(extra)))
	for i := range free {
		free[i] = add(add(offered.at(i), multiply(taken.at(i), -1)), multiply(extra.at(i), -1))
	}
	return free
}

// exceeds reports whether v has more than other of anything.
func (v vector) exceeds(other vector) bool {
	for column := range max(len(v), len(other)) {
		if v.at(column) > other.at(column) {
			return true
		}
	}
	return false
}

func (v vector) zero() bool {
	return !slices.ContainsFunc(v, func(amount int64) bool { return amount != 0 })
}

func add(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

func multiply(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	product := a * b
	if product/b == a && !(a == math.MinInt64 && b == -1) && !(b == math.MinInt64 && a == -1) {
		return product
	}
	if (a > 0) == (b > 0) {
		return math.MaxInt64
	}
	return math.MinInt64
}

// columns gives each resource that a node has, or a gang holds, a column. A
// request for any other resource fits nowhere, and makes no column.
type columns struct {
	names []resource.Name
	index map[resource.Name]int
	// order is the columns by value: extended resources, then CPU, memory and the rest,
	// by name. It does not depend on the order in which they came.
	order    []int
	extended []int // columns of extended resources, such as GPUs
}

func newColumns() columns {
	return columns{index: map[resource.Name]int{}}
}

// of returns the column of a resource, a new one when need be.
func (c *columns) of(name resource.Name) int {
	if column, known := c.index[name]; known {
		return column
	}
	column := len(c.names)
	c.names = append(c.names, name)
	c.index[name] = column
	c.order = append(c.order, column)
	if extended(name) {
		c.extended = append(c.extended, column)
	}
	rank := func(name resource.Name) int {
		switch {
		case extended(name):
			return 0
		case name == resource.CPU:
			return 1
		case name == resource.Memory:
			return 2
		}
		return 3
	}
	slices.SortFunc(c.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(c.names[a]), rank(c.names[b])), cmp.Compare(c.names[a], c.names[b]))
	})
	return column
}

// vector returns the amounts of a list.
func (c *columns) vector(l resource.List) vector {
	for name := range l {
		if _, known := c.index[name]; !known {
			for _, name := range l.Names() { // in an order that does not depend on the map's
				c.of(name)
			}
			break
		}
	}
	v := make(vector, len(c.names))
	for name, amount := range l {
		v[c.index[name]] = amount
	}
	return v
}

// list returns the amounts of a vector by name, without zeros.
func (c *columns) list(v vector) resource.List {
	l := resource.List{}
	for column, amount := range v {
		if amount != 0 {
			l[c.names[column]] = amount
		}
	}
	return l
}

// devices is the sum of extended resources.
func (c *columns) devices(v vector) int64 {
	sum := int64(0)
	for _, column := range c.extended {
		sum = add(sum, max(0, v.at(column)))
	}
	return sum
}

// extended reports whether a resource is a device that only some nodes have.
func extended(name resource.Name) bool { return resource.Whole(name) && name != resource.Pods }

func extendedFirst(a, b resource.Name) int {
	switch {
	case extended(a) == extended(b):
		return 0
	case extended(a):
		return -1
	}
	return 1
}
