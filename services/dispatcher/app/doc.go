// Package app composes the dispatcher from its parts. It is not the process,
// which is the main package or `muster-dev up`.
//
//	commands ----> followCommands --+
//	objects, pods ----> a cache ----+--> queue --> reconcile.Reconciler --> API server
//	questions ----> republish ------+                    |
//	a look at all now and then -----+                    v
//	                                          reporter --> statuses
//
// lease.Run calls act for each term in which this process holds the Lease of its cluster;
// others stand by. All memory is of one term: act first reads the last statuses, then all
// objects and commands, and only then makes a pass. A term ends when the Lease is lost,
// when a later session has published (bus.ErrReplaced), or when a part fails.
package app
