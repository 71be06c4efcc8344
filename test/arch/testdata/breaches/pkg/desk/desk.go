// Package desk imports a service, and what only local stacks and tests may.
package desk

import (
	_ "testing"

	_ "github.com/nats-io/nats-server/v2"

	_ "muster.dev/muster/pkg/local/devcluster"
	_ "muster.dev/muster/services/dispatcher/app"
)
