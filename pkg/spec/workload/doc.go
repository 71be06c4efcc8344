// Package workload describes a workload: the gang of pods that must start together, the
// phases of its life, and the reason why it waits.
//
//	queued --> admitted --> dispatched --> running --> succeeded, failed
//	  ^           |             |             |
//	  |           +-------------+-------------+-- evict ---> evicting ---+
//	  |           |             |             |                          | last pod gone
//	  +-----------(-------------(-------------(--------------------------+
//	              |             |             |
//	              +-------------+-------------+-- cancel --> cancelling --> cancelled
//
// These are the usual ways; phase.go has the table of all transitions. A refused submission
// is rejected and never becomes a workload.
//
// The package is not for reading Ray manifests (package ray) nor for deciding which workload
// starts (package admission). It is pure: standard library only, no clock, no I/O; times are
// values.
package workload
