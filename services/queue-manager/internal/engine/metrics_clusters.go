package engine

import (
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/state"
)

// clusterStates are the states of clusters as last seen, by name. The loop of the term alone uses it.
type clusterStates map[string]clusterState

type clusterState struct {
	state string
	shown bool // it has series
}

// showClusters sets the metrics of clusters, and logs and returns those whose state has changed, also
// of those that have no series because there are too many.
func (m *Metrics) showClusters(all []state.ClusterLoad, logger *zap.Logger) (changed []event.ClusterChanged) {
	seen := clusterStates{}
	for i, c := range all {
		now := clusterState{stateOf(c), i < mostLabels}
		was, known := m.clusters[c.Name]
		if known && was.state != now.state {
			changed = append(changed, event.ClusterChanged{Cluster: c.Name, State: now.state, Was: was.state, Live: c.Live})
			logger.Info("the state of a cluster has changed", zap.String("cluster", c.Name), zap.String("from", was.state), zap.String("to", now.state), zap.Int("workloads", c.Live))
		}
		if was.shown && was != now {
			m.clusterState.DeleteLabelValues(c.Name, was.state)
		}
		if now.shown {
			m.clusterState.WithLabelValues(c.Name, now.state).Set(1)
			m.clusterLive.WithLabelValues(c.Name).Set(float64(c.Live))
		} else if was.shown {
			m.clusterLive.DeleteLabelValues(c.Name)
		}
		seen[c.Name] = now
	}
	for name, was := range m.clusters {
		if _, there := seen[name]; !there && was.shown {
			m.clusterState.DeleteLabelValues(name, was.state)
			m.clusterLive.DeleteLabelValues(name)
		}
	}
	m.clusters = seen
	return changed
}

// stateOf is the state of a cluster as `muster get clusters` names it.
func stateOf(c state.ClusterLoad) string {
	status, now := query.ClusterStatus{Nodes: c.Nodes, Live: c.Live, Cordon: c.Cordon}, time.Unix(0, 0)
	status.WatcherHeard = now
	if !c.Silent.IsZero() {
		status.WatcherHeard = now.Add(-time.Second)
	}
	if c.Returning {
		status.FailedOver = now
	}
	return status.StateAt(now, time.Second)
}
