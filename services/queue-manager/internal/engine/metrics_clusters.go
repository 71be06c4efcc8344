package engine

import (
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/state"
)

// clusterStates are the states of clusters as last shown. The loop of the term alone uses it.
type clusterStates map[string]string

// showClusters sets the metrics of clusters, and logs and returns those whose state has changed.
func (m *Metrics) showClusters(all []state.ClusterLoad, logger *zap.Logger) (changed []event.ClusterChanged) {
	shown := clusterStates{}
	for i, c := range all {
		if i == mostLabels {
			break // each has a series
		}
		shown[c.Name] = stateOf(c)
		m.clusterLive.WithLabelValues(c.Name).Set(float64(c.Live))
		was, known := m.clusters[c.Name]
		switch {
		case known && was == shown[c.Name]:
			continue
		case known:
			m.clusterState.DeleteLabelValues(c.Name, was)
			changed = append(changed, event.ClusterChanged{Cluster: c.Name, State: shown[c.Name], Was: was, Live: c.Live})
			logger.Info("the state of a cluster has changed", zap.String("cluster", c.Name), zap.String("from", was), zap.String("to", shown[c.Name]), zap.Int("workloads", c.Live))
		}
		m.clusterState.WithLabelValues(c.Name, shown[c.Name]).Set(1)
	}
	for name, was := range m.clusters {
		if shown[name] == "" {
			m.clusterState.DeleteLabelValues(name, was)
			m.clusterLive.DeleteLabelValues(name)
		}
	}
	m.clusters = shown
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
