// Package simhooks gives simulations the step logic of capacity-watcher: the code that
// its process runs, without goroutines, connections and clock.
//
// It has no logic of its own. It exists because test/sim cannot import a service's
// internal packages; services do not import it.
package simhooks

import (
	"muster.dev/muster/services/capacity-watcher/internal/observed"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

// The observed state of a cluster, and its publisher.
type (
	Cache     = observed.Cache
	PodName   = observed.Pod
	Member    = observed.Member
	Unmanaged = observed.Unmanaged
	Owner     = observed.Owner
	Publisher = publish.Publisher
	Options   = publish.Options
	History   = publish.History
)

// New returns a publisher; PublishChanges is its step.
var New = publish.New

// HistoryOf reads what was published before.
var HistoryOf = publish.HistoryOf

// NewMetrics registers its metrics.
var NewMetrics = publish.NewMetrics
