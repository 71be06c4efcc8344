// Package bus is Muster's use of NATS JetStream: the streams, publishing events, and the two
// ways of reading them.
//
//	Publish, PublishNext --> stream of work ---> Work, Handle  each message once:
//	                                             |             Ack, Retry, Reject
//	                                             +-- StoreDeadLetter --> MUSTER_DEAD
//
//	Values, PublishNext ---> last values,    --> Follow        the last value of each
//	                         history                           subject, then every change
//	                                         --> Replay        all that is there, then
//	                                                           every later message
//
//	Notify ----------------> (no stream)     --> Listen        what comes from now on
//
// topology.go has the streams as data, streams.go makes them. What the kinds of events mean is
// not known here: package event has their types, package workload their meaning. No other
// package of Muster imports nats.go, except for the request-reply queries of package query,
// which use Conn.
//
// # Work
//
// Work is for messages that must be processed once, such as submissions. Each subject has a
// durable consumer of its own, a lane (lanes.go, lanecount.go, consumername.go). Lanes take
// turns, message by message, and where more subjects have messages than there are lanes, those
// that have waited for longest get one (turns.go). The messages of a subject are in order. One
// that is not settled in time comes again, so the reader must accept it twice. Messages that
// cannot be processed become dead letters (deadletter.go).
//
// # Values
//
// Follow is for values that are true until the next one, such as the state of a node. It
// acknowledges nothing, and reads everything again after a lost connection, so its reader must
// accept the same value twice. CaughtUp is closed when all that existed at the start has been
// read (catchup.go).
//
// Their publisher is of an epoch. NATS takes a value only if the last one of its subject is the
// one that Values knows of, and a value of a later epoch stays (values.go): ErrReplaced. Values
// finds what a stream has lost (lost.go), and Round spreads publishing everything again over
// time (round.go).
//
// # Room
//
// No subject, queue or cluster may fill a stream for the others:
//
//	work             share.go, level.go    the oldest messages of a subject go that has more
//	                                       than its part and is not being read down
//	observations     observed.go, room.go  the values of a cluster beyond its limits go
//	history          history.go, room.go   the oldest messages of the largest queues go
//	last events      guardlast.go          requests are answered a few at a time
//
// # When NATS fails
//
//   - The connection is lost: subscriptions begin again when it is back (subscribe.go), and
//     Reconnected has publishers compare their streams (bus.go).
//   - A stream is lost: a reader makes it again (subscribe.go), and its publisher finds by its
//     state what it lacks (state.go, lost.go).
//   - There is no room: publishing fails with ErrFull (publish.go), and Storage returns the
//     reason (storage.go).
//   - The files of a stream are gone: ConfigureStreams, which the leader calls, makes the stream
//     again. Files that cannot be written it reports in the log (streams.go, writable.go).
package bus
