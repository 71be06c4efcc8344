// Package kubernetes is the dispatcher's access to one API server: the Ray objects and pods
// that carry Muster's labels, watched and uncached, and the writes of the dispatcher.
//
//	                     package reconcile
//	                       ^           |
//	     what is there     |           |  what to do
//	                       |           v
//	 Watch, the cache               Client, uncached reads and writes
//	 ----------------               ---------------------------------
//	 objects, pods  watch.go        Ray objects       client.go, rayobject.go
//	 what made      made.go         labelled ones     suspend.go
//	 them, by UID                   wrapped ones      items.go, labelled.go
//	 other pods     others.go       worker groups     giveup.go
//	 requests for   requestwatch.go pods              pods.go
//	 nodes                          placeholder pods  placeholders.go
//	                       ^        quotas, rights    quotas.go, rights.go
//	                       |                     |
//	workloads of which     |                  limiter      how many at once (limit.go)
//	something has changed  |                     |
//	                       |                lease.Guard    no write without the Lease
//	                       |                     |
//	                       +---- API server <----+
//
// A change or deletion is of exactly one object, which it names by its UID, so that it does
// not hit another one of the same name. Whether anything is left of a workload is read from the
// API server, because the cache may be behind.
//
// Permission (permission.go) is not under the Lease: each process obeys the permission of its
// cluster, also one that has lost the Lease.
//
// After each new connection an API server may have begun again. Warm (warm.go) then has it read the
// schemas of Ray objects, before users need that.
//
// The package does not decide what is written (package reconcile does), nor which pod goes to
// which node (package gang).
package kubernetes
