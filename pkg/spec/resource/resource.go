// Package resource holds exact integer amounts of node resources and the few
// operations that admission needs: add, subtract, multiply, compare.
//
// It is not for parsing or printing Kubernetes manifests (package kube turns
// the quantities of Kubernetes into these amounts) and knows nothing of nodes or pods.
// The package is pure: standard library only, no clock, no I/O.
package resource

import (
	"math"
	"slices"
	"strings"
)

// Name names a resource as Kubernetes does: "cpu", "memory", "nvidia.com/gpu".
type Name string

// The resources that every pod and node has.
const (
	CPU              Name = "cpu"               // in millicores
	Memory           Name = "memory"            // in bytes
	EphemeralStorage Name = "ephemeral-storage" // in bytes
	Pods             Name = "pods"              // pod slots of a node
)

// Whole reports whether the resource comes in whole pieces, as pod slots and
// devices (extended resources) do: there is no half of one.
func Whole(name Name) bool { return name != CPU && !InBytes(name) }

// List holds an amount per resource: CPU in millicores, memory, storage and
// huge pages in bytes, every other resource in units. A missing name means
// zero. Arithmetic saturates at the bounds of int64, so that an absurd request
// can only ever be too large, never wrap to a small one. Operations return new
// lists and never change their operands; a List may be shared by readers.
type List map[Name]int64

// Plus returns l + other.
func (l List) Plus(other List) List {
	sum := l.Clone()
	for name, amount := range other {
		sum[name] = SaturatingAdd(sum[name], amount)
	}
	return sum
}

// Minus returns l - other. Amounts may become negative: a node whose
// allocatable shrank below what runs on it has less than nothing free.
func (l List) Minus(other List) List {
	diff := l.Clone()
	for name, amount := range other {
		diff[name] = SaturatingAdd(diff[name], -amount)
	}
	return diff
}

// Times returns l with each amount multiplied by n (n >= 0).
func (l List) Times(n int64) List {
	product := make(List, len(l))
	for name, amount := range l {
		product[name] = SaturatingMul(amount, n)
	}
	return product
}

// Max returns the larger amount of each resource in l and other.
func (l List) Max(other List) List {
	larger := l.Clone()
	for name, amount := range other {
		larger[name] = max(larger[name], amount)
	}
	return larger
}

// FitsIn reports whether every amount asked in l is available in free.
// Resources that l asks nothing of do not matter, even when free has less than
// nothing of them.
func (l List) FitsIn(free List) bool {
	for name, asked := range l {
		if asked > 0 && asked > free[name] {
			return false
		}
	}
	return true
}

// Clone returns a copy that may be changed without changing l.
func (l List) Clone() List {
	clone := make(List, len(l))
	for name, amount := range l {
		clone[name] = amount
	}
	return clone
}

// Names returns the names in l in sorted order.
func (l List) Names() []Name {
	names := make([]Name, 0, len(l))
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Equal reports whether both lists hold the same amounts; zero and missing are
// the same.
func (l List) Equal(other List) bool {
	for name, amount := range l {
		if other[name] != amount {
			return false
		}
	}
	for name, amount := range other {
		if l[name] != amount {
			return false
		}
	}
	return true
}

// String prints the list in sorted order, such as "cpu 2, memory 16Gi".
func (l List) String() string {
	var parts []string
	for _, name := range l.Names() {
		if l[name] != 0 {
			parts = append(parts, string(name)+" "+Format(name, l[name]))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// SaturatingAdd is a+b, or the largest or smallest number where that is beyond it.
func SaturatingAdd(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// SaturatingMul is a*b, or the largest or smallest number where that is beyond it.
func SaturatingMul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	product := a * b
	if product/b != a || (a == math.MinInt64 && b == -1) {
		if (a > 0) == (b > 0) {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return product
}
