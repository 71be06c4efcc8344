// Package demo plays the story of gang admission on a running stack, and checks
// each step of it in Kubernetes: a gang that fits starts whole, one that does
// not fit waits with an exact reason and without a trace in the cluster, and
// starts when there is room.
//
// It is not a test of Muster's parts; it is what a stranger sees first.
package demo
