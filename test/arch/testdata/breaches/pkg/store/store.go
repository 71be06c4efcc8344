// Package store runs a database and talks to an API server.
package store

import (
	_ "k8s.io/client-go"

	_ "muster.dev/muster/pkg/local/postgres"
)
