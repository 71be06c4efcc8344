// Package store is the ledger in Postgres: reading the state that a leader starts from, and
// writing the changes of one batch in one transaction.
//
//	standby                      leader                          relay
//	-------                      ------                          -----
//	Follower.Load  follow.go     Store.Lead     leadership.go
//	     |                         lock, new epoch
//	     |                            |
//	     |                       Store.Prepare  commit.go
//	     |                            |
//	     |                       Transaction: one round trip
//	     |                            |
//	     |                            +--> nodes, workloads, reservations
//	     |                            +--> history, decisions
//	Follower.Next <-- commits <-------+
//	  what each has touched           +--> outbox --> Store.Unsent, outbox.go
//	                                                  Store.CheckEpochAndAddManifests
//	                                                       | published
//	                                                  Store.Sent: the rows go,
//	                                                  the watermark moves
//
// # Who writes
//
// The leader does. Its transactions begin with its epoch, which the database compares with the
// stored one (Store.transact in store.go). A checkpoint takes long and must not hold up a
// successor, so each of its statements compares the epoch by itself (checkpoint.go). Without
// an epoch are the statement that begins one (Store.Lead), migrations (migrate.go), and the
// release of something from quarantine by an operator (Store.Unquarantine).
//
// # What a write rests on
//
//	ErrFenced         another queue-manager leads                      store.go
//	ErrStale          the commit does not follow the last version      commit.go
//	ErrCommitMissing  the database lacks a commit that this process    follow.go, reached.go
//	                  knows of: it was restored to an older state
//	ErrOldPrimary     the server was replaced by one of its standbys   lineage.go
//
// A commit gives everything back before it takes anything (write.go). It changes the phase of
// a workload and its reservations in one statement (live.go), because the guards of the
// database look at both after each statement.
//
// # When a commit is refused
//
// Suspect (sqlstate.go) reports whether the content may be the reason. Store.Probe (probe.go)
// then writes the commit part by part (probe_parts.go) in a transaction that it rolls back, and
// halves what is refused. Refused places are tried for a made-up workload, too, because their node
// or their quota may be at fault (probe_places.go). The engine keeps what it finds out of later
// decisions (quarantine.go). A live workload whose row cannot be read is loaded by its places
// (load_apart.go).
//
// # What is read
//
//	load.go, reader.go                     the state, for a term
//	query.go, queues.go, status.go, ...    answers to questions
//	decisions.go, checkpoint.go            decision log and checkpoints, for replays
//	usage.go, estimates.go, forecast.go    history, for reports and forecasts
//	recovery.go                            what a database that was restored to an older
//	                                       state still has
//
// Package store does not decide and does not publish. The database itself refuses what must
// never be (over-commit, half a gang, two live workloads of one name, a write of a replaced
// leader); the migrations describe how.
package store
