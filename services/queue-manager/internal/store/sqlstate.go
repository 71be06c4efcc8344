package store

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// passing are the classes of SQLSTATE that show nothing about what was to be
// stored: the same statements may pass later.
var passing = []string{
	"08", // the connection
	"25", // the state of the transaction, such as read-only after a failover
	"28", // the login
	"3D", // the database
	"40", // a rollback: serialization, deadlock
	"53", // disk, memory and connections
	"55", // locks, and objects in use
	"57", // shutdown, and statements that were cancelled or took too long
	"58", // the system of the server
}

// guards are the constraints by which the schema refuses what no decision may do.
// A violation means that the decision rests on something else than the ledger.
var guards = []string{
	"no_overcommit", "no_overuse", "all_or_nothing", "node_in_use", "workloads_live_object", "workloads_queue",
}

// Suspect reports whether the database refused a transaction for what was in it:
// every SQLSTATE does, but for those that pass by waiting, a replaced leader and
// an old version.
func Suspect(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || len(refused.Code) != 5 || errors.Is(err, ErrFenced) || errors.Is(err, ErrStale) {
		return false
	}
	return refused.Code != fenced && !isStale(refused) && !slices.Contains(passing, refused.Code[:2])
}

// Passing returns the SQLSTATE of a refusal that passes by waiting; empty for any other error.
func Passing(err error) string {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || len(refused.Code) != 5 || isStale(refused) || !slices.Contains(passing, refused.Code[:2]) {
		return ""
	}
	return refused.Code
}

// cancelled reports whether Postgres has cancelled a transaction that it may store at once: for
// another one, for a lock, or for the time that a statement took. Of 40003 it does not know
// whether the transaction is stored.
func cancelled(err error) bool {
	switch code := Passing(err); code {
	case "55P03", "57014":
		return true
	default:
		return strings.HasPrefix(code, "40") && code != "40003"
	}
}

// ViolatesGuard reports whether a guard of the ledger refused.
func ViolatesGuard(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && slices.Contains(guards, refused.ConstraintName)
}

// badData reports whether a value itself cannot be stored, wherever it is put:
// class 22 is of data, 54 of limits.
func badData(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && len(refused.Code) == 5 && (refused.Code[:2] == "22" || refused.Code[:2] == "54")
}
