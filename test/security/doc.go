// Package security attacks Muster as one of many teams on it could: tenants who
// submit messages or objects, the pods of their gangs, and a stolen login of
// Postgres. README.md lists the attacks with their tests. The users of NATS are
// attacked in deploy/nats/access.
package security
