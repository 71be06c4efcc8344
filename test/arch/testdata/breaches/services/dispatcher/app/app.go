// Package app speaks NATS by itself and links pgx by way of test support.
package app

import (
	_ "github.com/nats-io/nats.go"
	_ "k8s.io/client-go"

	_ "muster.dev/muster/pkg/testkit/pgtest"
)
