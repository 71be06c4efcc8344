// Package simhooks gives simulations the step logic of the dispatcher: the very code
// that its process runs, without its goroutines, connections and clock.
//
// It has no logic of its own. It is for test/sim, because what is internal to a
// service cannot be imported from there; services do not import it.
package simhooks

import (
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
	"muster.dev/muster/services/dispatcher/internal/permission"
	"muster.dev/muster/services/dispatcher/internal/reconcile"
)

// The reconciler, and what it works with.
type (
	Reconciler  = reconcile.Reconciler
	Cluster     = reconcile.Cluster
	Cache       = reconcile.Cache
	Reporter    = reconcile.Reporter
	Schedule    = reconcile.Schedule
	Truth       = reconcile.Truth
	Object      = kubernetes.Object
	Wrapped     = kubernetes.Wrapped
	Placeholder = kubernetes.Placeholder
	Pod         = gang.Pod
	Pin         = gang.Pin
	Controller  = gang.Controller
	Left        = kubernetes.Left
	Quota       = gang.Quota

	Permission       = permission.Keeper
	PermissionRecord = permission.Record
	Held             = permission.Held
)

// NewPermission returns what keeps the permission of a cluster.
var NewPermission = permission.New

// ErrPermissionChanged means that another process has stored another permission.
var ErrPermissionChanged = permission.ErrChanged

// New returns a reconciler that is driven by hand.
var New = reconcile.NewSteps

// NewMetrics registers its metrics.
var NewMetrics = reconcile.NewMetrics
