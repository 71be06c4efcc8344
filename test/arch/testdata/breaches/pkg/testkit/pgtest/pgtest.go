// Package pgtest breaks no rule.
package pgtest

import _ "github.com/jackc/pgx/v5"
