// Package httpserver is intake's HTTP API, for clients without NATS. They submit, list,
// describe, explain, cancel and follow workloads, in the types of the messages.
//
//	request
//	   |
//	authenticated   certificate, token or ID token: who asks       identity.go, oidc.go    401
//	known           only parameters that the operation has         unknown.go              400
//	limited         what a caller may have open at once            limits.go               429
//	forOperators    only for operations that ask for it            operators.go            403
//	   |
//	handler         of the caller's own queues                     queues.go               404
//	   |
//	   +-- submit.go                reads it as from NATS, publishes it, and answers when
//	   |                            queue-manager has stored or refused the workload
//	   +-- workloads.go, usage.go,  ask queue-manager
//	   |   reports.go, ...
//	   +-- requests.go              publishes what is asked of a workload (publish.go)
//	   +-- holds.go, cordons.go,    have queue-manager change the configuration, and answer
//	   |   clusters.go,             with what is stored then
//	   |   reservations.go
//	   +-- follow.go                events from NATS (merge.go), as server-sent events (stream.go)
//
// The operations are those of package httpapi, from which test/contract generates openapi.json.
//
// A client certificate or a bearer token identifies the caller; nothing else in a request
// does. A caller may see and cancel what it may submit: the queues of queue-manager define
// that, and queue-manager checks it again. A workload of another caller and one that does not
// exist get the same answer. Operators see and change everything.
//
// The package has no lasting state and is not for decisions. Package submission reads
// submissions, and queue-manager answers the rest.
package httpserver
