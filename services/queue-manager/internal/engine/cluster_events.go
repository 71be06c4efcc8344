package engine

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
)

const (
	// clusterNews bounds the changes of clusters that wait to be published.
	clusterNews = 256
	// clusterEventWithin bounds the publication of one.
	clusterEventWithin = 5 * time.Second
)

// noteClusters has changes of clusters published. The loop of the term does not wait for NATS.
func (l *leader) noteClusters(changed []event.ClusterChanged) {
	for i := range changed {
		select {
		case l.clusterNews <- &changed[i]:
		default:
			l.Logger.Warn("cannot publish that the state of a cluster has changed: too many wait", zap.String("cluster", changed[i].Cluster))
		}
	}
}

// publishClusters publishes the changes of clusters, one after the other, until ctx ends. One that
// NATS does not take is logged: the answers and metrics show the state in any case.
func (l *leader) publishClusters(ctx context.Context) error {
	for number := 1; ; number++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c := <-l.clusterNews:
			bounded, cancel := context.WithTimeout(ctx, clusterEventWithin)
			err := l.publish(bounded, event.ClusterEventsSubject(c.Cluster), fmt.Sprintf("queue-manager/cluster/%d/%d", l.epoch, number), c)
			cancel()
			if err != nil && ctx.Err() == nil {
				l.Logger.Warn("cannot publish that the state of a cluster has changed", zap.String("cluster", c.Cluster), zap.String("state", c.State), zap.Error(err))
			}
		}
	}
}
