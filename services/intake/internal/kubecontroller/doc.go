// Package kubecontroller is intake's Kubernetes controller: it submits the AppWrappers and
// the labelled Ray objects of a cluster as workloads, and writes their state back on the
// objects.
//
//	watch of the cluster --+
//	events of the bus -----+--> queue of keys --> reconcile --> finalizer
//	reconnection, retry ---+    (fairqueue.go)    one object --> submission, cancellation
//	                                                         --> queue of keys --> mark
//	                                                             (marks.go)        --> status, annotations, event
//
// Where what happens:
//
//	client.go                    the watch and its cache
//	rights.go, answers.go        what is asked of the API server about users and policies
//	write.go, finalizer.go       what is written to it
//	tracked.go                   what is known of the workload of each object, from events
//	wrapper.go                   the next step for an AppWrapper
//	rayobject.go                 the next step for a labelled Ray object
//	submit.go, republish.go      submitting and cancelling until queue-manager answers
//	resync.go                    asking queue-manager for the workloads of all objects
//	creator.go                   as whom an object is submitted
//	marks.go, events.go          the mark of an object: how often, and with what
//	statuses.go                  asking queue-manager how what runs in the place of objects is
//	mirror.go, vanished.go       the status of an object whose gang may run in another cluster, and its end
//	estimates.go                 when workloads that wait will start, as part of the mark
//	bounded.go                   bounds the time and memory of reading an object
//
// It is level-triggered and has no lasting state. The next step is a function of the object,
// of queue-manager's record of the workload, and of its observed pods. The workload's id
// derives from the object's UID. So the process may die at any point, and several may run:
//
//   - before it has set the finalizer it submits nothing;
//   - with the finalizer, a deleted object waits for the teardown of its workload;
//   - repeating a submission submits the same workload.
//
// The life of an object:
//
//	created --> finalizer --> submitted --> marked with each change --> ended
//	                              |                                       |
//	                              | repeated until queue-manager answers  | an AppWrapper that has
//	                              v                                       | succeeded: deleted after
//	                          rejected: the mark has the reason           | its ttl
//
//	deleted --> cancelled, until queue-manager confirms it --> finalizer removed
//
// The finalizer of an AppWrapper is removed when nothing of its workload is left, that of a Ray
// object when queue-manager has confirmed the cancellation: Kubernetes deletes the pods of a
// Ray object only after the object.
//
// It is not for reading AppWrappers (package appwrapper), nor for creating the wrapped
// objects (the dispatcher).
package kubecontroller
