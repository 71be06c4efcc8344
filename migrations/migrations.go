// Package migrations embeds the numbered SQL files that make the ledger's
// schema. They are applied by `queue-manager migrate`, never at the start of a
// service. A file that has been released is never edited.
package migrations

import "embed"

// Files holds the migrations, named NNNN_subject.sql, in goose's format.
//
//go:embed *.sql
var Files embed.FS
