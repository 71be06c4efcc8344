// Package stack runs all of Muster's services in one process against real NATS,
// Postgres and Kubernetes, for tests and benchmarks: the services' own app.Run,
// nothing in place of anything.
//
// Several stacks share one dev cluster: each has nodes of its own (a label), a
// namespace and a name for the cluster of its own, and its own NATS server and
// database.
package stack
