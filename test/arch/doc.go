// Package arch holds the rules on which package may import which, and the tests
// that enforce them on the whole repository.
//
// The rules are data (rules.go); graph.go reads the packages with go list;
// source.go looks into the source for what imports cannot tell; names.go compares the
// names on pages with the code; retired.go keeps replaced words out of names; circles.go
// holds the files of a package to an order in which calls lead one way; tables.go finds
// tests over tables that run no subtests; interfaces.go finds interfaces of many methods.
// counts.go counts, for the command of that name. A fixture under testdata breaks every rule of the
// first two once and proves that each bites.
package arch
