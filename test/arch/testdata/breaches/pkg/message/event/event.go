// Package event links a client of a server.
package event

import "muster.dev/muster/pkg/store"

var _ = store.Read
