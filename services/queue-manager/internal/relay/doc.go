// Package relay publishes the messages of the outbox in the order of their commits and
// removes them once NATS has them. It finds out when NATS has lost some of what it had, and
// publishes that again.
//
//	commit --> outbox --> publisher of commands --> MUSTER_DISPATCH
//	                  --> publisher of events ----> MUSTER_EVENTS
//	                           |
//	                           +-- stored: the row is removed and the watermark saved
//	                           +-- compare: the end of the stream with the watermark, at the
//	                               start of a term, after a reconnection and periodically
//
// Commands and events have a publisher each, so that one does not wait for the other. The
// server stores a message only directly after the one that the relay knows to be the
// stream's last. That keeps the order, whatever fails in between. It reveals a stream that
// has lost its end before anything new is stored there. And it keeps out a relay whose term
// is over: what it knows to be last no longer is.
//
// The last property holds as soon as the term has stored something of its own. Until then a
// message of an earlier leader may still arrive, and if Postgres was restored to an older
// state, the ledger may not know it. A publisher finds such a message before it follows it
// (lookAhead), and the term ends: the next one has it among what FindAhead finds.
//
// A message may be published twice, when the process dies before it has removed its row. Its
// id is the same, and every reader accepts the same message twice. Where NATS would take it for
// a duplicate of one that the stream does not have (emptied, stall), a suffix follows the id;
// bus.Delivery.MessageID leaves it out.
//
// A relay whose term is over is kept out by Postgres, too: before each batch and with each
// removal the epoch is compared (CheckEpochAndAddManifests and Sent, in package store).
//
// The package does not decide what is published (package state does).
package relay
