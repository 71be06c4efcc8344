// Package app composes queue-manager from its parts. It is not the process,
// which is the main package or `muster-dev up`.
//
//	                 +--> package engine: leads, or follows as a standby <--> NATS
//	Run --> Postgres +--> package forecast: estimates of starts
//	                 +--> answers.go: questions on NATS, by reading Postgres
//	                 +--> package load: figures of the queues
//
// The leader and every standby answer questions alike, from what is committed.
package app
