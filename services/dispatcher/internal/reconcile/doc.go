// Package reconcile makes true what queue-manager wants. It compares, workload by
// workload, what is wanted with what is there, does the next step, and reports.
//
// # The path of a command
//
//	Reconciler.Command   keeps the command, unless a later one is known   workloads.go, tracked.go
//	work queue           objects that are to be created first             priority.go
//	Reconciler.look      one pass over one workload                       reconcile.go, pass.go
//	create               permit all objects, then create each             permissions.go, create.go
//	watch                compare the objects with the command             watch.go
//	place                send the gated pods to their nodes               place.go
//	remove               delete the objects, wait for the pods            remove.go, overdue.go
//	reports              publish the status if it is news                 status.go, republish.go
//
// The stages are the same for the one Ray object of a workload and for all objects of
// an AppWrapper. How these are read and written is behind the interfaces of objects.go:
// a Ray object is watched (rayobject.go), what an AppWrapper wraps can be of any kind
// and is read when needed (wrapped.go). A bundle of which an object is refused is taken
// back whole (rollback.go). Objects and pods of an earlier attempt go first (earlier.go).
//
// Two searches go on beside the commands: the sweep (sweep.go, confirm.go) for what no
// live workload owns, and the one for pods that Muster does not account for
// (strays.go, unplanned.go).
//
// # Failure
//
// The package is level-triggered. A command, a change in Kubernetes, a reconnection
// and a retry all lead to the same pass, and a second pass changes nothing. Only the
// last status survives a restart, on the bus. So the process may die at any point:
//
//   - before an object is created: the next pass creates it;
//   - after it was created and before that was reported: the next dispatcher finds it in
//     its cache by workload and attempt, and goes on. AlreadyExists comes only when the
//     cache is behind or an answer was lost. Only if the object is deleted at that moment,
//     too, it is created twice;
//   - between two pods being pinned: pinned pods keep their nodes, the next pass pins
//     the rest;
//   - after a deletion: the next pass finds nothing and reports that.
//
// # Rules
//
//   - Nothing is created beside an earlier attempt that still exists.
//   - Every object is permitted before the first is created.
//   - What was created is remembered by UID. An object without that UID is deleted only
//     when it carries the labels of the workload, or when Muster made it for a workload
//     that has ended and whose name this one has (earlier.go, wrappeditem.go).
//   - A removal that objects block is given up after removeWithin. One that running pods
//     block goes on until they are gone. The end of either is reported.
//   - The sweep asks queue-manager before it deletes.
//   - Nothing that needs the permission of the cluster is created or changed without it
//     (permitted.go). Package permission deletes what is there when it has ended.
package reconcile
