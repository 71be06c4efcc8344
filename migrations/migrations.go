// Package migrations embeds the numbered SQL files of the ledger's schema.
// `queue-manager migrate` applies them; a service never does so at its start. A released
// file is never edited. The package is not for running migrations.
package migrations

import "embed"

// Files holds the migrations, named NNNN_subject.sql, in goose's format.
//
//go:embed *.sql
var Files embed.FS
