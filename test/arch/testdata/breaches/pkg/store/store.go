// Package store runs a database.
package store

import _ "muster.dev/muster/pkg/localpg"
