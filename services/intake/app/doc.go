// Package app composes intake from its parts. It is not the process, which is
// the main package or `muster-dev up`.
//
//	muster.submit.<queue> --> handle --> submission.Read --> publish --> settle
//	                            |        within a budget     without     acknowledges the
//	                            |        of memory           waiting     message when NATS
//	                            v                                        has stored all
//	                   survives: from the third delivery on a
//	                   process of its own reads the message first
//
//	HTTP ------------> package httpserver -----+--> workloads, requests to queue-manager
//	objects of a ----> package kubecontroller -+
//	cluster            package queueobjects ---+
//	admission of ----> package policywebhook
//	pods, objects
//
// Any number of processes run side by side: they have no state. A message that can never be
// read goes to the dead letters, with a rejection where its workload is known
// (deadletter.go); one that cannot be published now comes again.
package app
