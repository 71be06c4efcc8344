// Package event holds the messages that Muster's parts exchange: the CloudEvents
// envelope, one Go type per event, and the registry that turns a type string
// into its Go type.
//
//	workload.go     submitted, rejected, changed, cancelled, moved, ...  of a workload
//	operate.go
//	capacity.go     what a cluster's nodes and pods are                  from capacity-watcher
//	namespace.go
//	dispatch.go     the command for a workload, and its status           to and from dispatchers
//	provision.go    requests for nodes, as a part of both
//	permission.go   what lets a cluster keep its gangs                   to and from dispatchers
//	checks.go       AdmissionChecks: what is asked, and the answers      to and from controllers
//	demand.go,      what operators have to read                          from queue-manager
//	budget.go
//
// An event becomes bytes by New and Envelope.Encode, or by Marshal in one step. Parse and Decode
// read them. subjects.go lists where each is published. What the key of a cluster can publish is
// checked against bounds before it is decoded (bounds.go), and before it is used (check.go).
//
// It is not for transport (package bus) and not for meaning (package workload).
package event
