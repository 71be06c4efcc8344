// Package app composes capacity-watcher: watches on one cluster's nodes and pods fill a
// cache, which a publisher publishes on the bus. It is not the process, which is the
// main package or `muster-dev up`.
//
//	API server --> package watch --> observed.Cache --> publish.Publisher --> last values
//	                                                        ^
//	                                    questions ----------+
//
// lease.Run calls act for each term in which this process holds the Lease of its cluster;
// others stand by. A term begins with what earlier ones have published
// (publish.ReadHistory), so that it can report what is gone. It ends when the Lease is
// lost, when a later session has published (bus.ErrReplaced), or when a part fails.
package app
