// Package arch holds the rules on which package may import which, and the tests
// that enforce them on the whole repository.
//
// The rules are data (rules.go); graph.go reads the packages with go list;
// source.go looks into the source for what imports cannot tell. A fixture under
// testdata breaks every rule once and proves that each bites.
package arch
