// Package local runs the parts of an installation as processes of this machine,
// for suites where there is no Docker engine: the services' own binaries,
// nats-server, Postgres and the dev cluster. Connections between a service and
// its servers go through a proxy, which can be cut.
package local
