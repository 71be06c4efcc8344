// Package query is how people and tools query queue-manager, and
// change the configuration of queues, over NATS request-reply: the requests, the
// answers, and a client.
//
//	Client                   Transport                        queue-manager
//	Workloads, Queues, ... --> muster.query.<what> -----------> Handle, HandleEach
//	Configure, Hold ---------> muster.configure, muster.hold
//	answer, ProblemError <--------------------------------------
//
// The requests to muster.query go to any queue-manager, but for those that the leader alone can
// answer. A Transport is a connection to NATS (client.go) or, for clients without NATS, the
// HTTP API. A Patient client asks again while queue-manager is busy (patient.go).
//
// What the keys of clusters may ask has a bounded size, and each cluster a bounded number of questions
// that are answered at once (percluster.go).
//
// It is not for work, which is submitted and cancelled by events (package event).
package query
