// Package sim runs Muster in a played world from one seed: the real step logic of
// the services (the state and the decision, queue-manager's step and relay, the
// dispatcher's reconciler, capacity-watcher's cache and publisher, intake's
// reading) on a simulated network, clock, disk and cluster, which fail in every
// way that the seed draws. After every event the promises are checked.
//
// A run is one goroutine at a time: services are coroutines that hand over at each
// wait, so the same seed gives the same run, event by event. A failing seed is
// shrunk to the shortest story that still fails, which can be kept as a test.
//
//	seed, or a Script of faults (script.go)
//	  |
//	World: one event after the other, by time
//	  |
//	  +-- machines of coroutines (proc.go) that run the services' steps:
//	  |   manager.go, dispatcher.go, watcher.go; and submitter.go, which never fails
//	  +-- what is played: network.go, stream.go (NATS), ledger.go (Postgres),
//	  |   api.go, cluster.go, lease.go (Kubernetes)
//	  +-- what fails: nemesis.go, strikes.go
//	  +-- checker (check.go, promises.go): the ledger and the cluster as they are,
//	      against the promises; witness (witness.go): decides again --> Breach
//
// What is played and not real: Postgres (its guards are played, too: see ledger.go; in
// a share of the runs real tables are written in lockstep: see lockstep.go;
// the real ones are the store's tests), NATS, the API server with KubeRay, the
// scheduler and the kubelets; the loops of an election, whose rules are real
// (pkg/kube/lease/rules); and the loops around the steps, which in the services
// are goroutines that wait on channels. Those are under test/suite and test/chaos.
package sim
