// Package scenario reads and runs scenario files: nodes, queues, running and
// waiting workloads, then steps, each an event and what is expected of it. Users
// try their queue policies with them before they roll them out, and the
// project's own policy tests are written in them.
//
// A scenario runs in memory on the decisions and rules that queue-manager uses
// (package world drives package state), without NATS, Postgres or Kubernetes.
// There is no policy in here. The format is described in docs/scenarios.md.
//
//	a file --> Parse --> File --> Run --> world.World <--> state.State
//	                              step by step: |
//	                              an event      v
//	                                            what happened, compared with what the
//	                                            step expects --> Outcome
//
// The package reads no clock and has no effects. It is not for testing the
// services, whose messages may come twice, late or never.
package scenario
