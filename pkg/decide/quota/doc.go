// Package quota holds how much each queue may use: ClusterQueues with quotas per resource
// and flavor, trees of Cohorts that lend to each other, LocalQueues and priority classes, in
// Kueue's words and with Kueue's meaning.
//
//	Config --> Tree, with usage --> Assignments --> charges --> Allocate, Release
//	                                a flavor for    amounts     change the usage of the queue
//	                                each resource   of each     and of the cohorts above it
//	                                of a pod set    flavor
//
// The package computes whether an amount is within quota, in which flavor, and how large the
// share of a queue is. It is not for deciding which gang starts (package admission) nor for
// nodes (package placement): quota is not capacity.
//
// The package is pure: no clock, no I/O, and no imports but the standard library and the
// values of pkg/spec.
package quota
