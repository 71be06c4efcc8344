// Package step gives simulations the step logic of capacity-watcher: the very
// code that its process runs, without its goroutines, connections and clock.
//
// It has no logic of its own. It is for test/sim, because what is internal to a
// service cannot be imported from there; services do not import it.
package step

import (
	"muster.dev/muster/services/capacity-watcher/internal/picture"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

// The picture of a cluster, and who tells it.
type (
	Picture   = picture.Picture
	PodName   = picture.Pod
	Member    = picture.Member
	Unmanaged = picture.Unmanaged
	Owner     = picture.Owner
	Publisher = publish.Publisher
	Options   = publish.Options
	History   = publish.History
)

// New returns a publisher; Tell is its step.
var New = publish.New

// HistoryOf reads what was published before.
var HistoryOf = publish.HistoryOf

// NewMetrics registers its metrics.
var NewMetrics = publish.NewMetrics
