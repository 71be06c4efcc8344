// Package cli is the command line of the client: one file per command. It reads
// flags, queries or changes Muster over NATS or the HTTP API, and prints.
//
//	Run (root.go) --> command --> server.open (server.go, connection.go)
//	                    |            |
//	                    |            +-- NATS: package query, the events of package bus
//	                    |            +-- HTTP: package overhttp (web.go)
//	                    |
//	                    +--> lookup.go, find.go, pick.go: which workload or queue is meant
//	                    +--> package output prints the answer; package exit has the codes
//
// predict, scenario, simulate and verify need no server (predict.go, scenario.go, simulate.go,
// verify.go). replay reads Postgres itself, by queue-manager's package replay (replay.go).
//
// It is not for running services (muster-dev does) nor for judging manifests, which
// Muster does where all interfaces have the same rules.
package cli
