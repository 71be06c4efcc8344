package suite

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// replicated reports whether all NATS servers have all streams and consumers.
func (w *world) replicated() bool {
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		return false
	}
	whole := func(info *jetstream.ClusterInfo) bool {
		return info != nil && info.Leader != "" && !slices.ContainsFunc(info.Replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Offline })
	}
	streams := js.ListStreams(ctx)
	for stream := range streams.Info() {
		if !whole(stream.Cluster) {
			return false
		}
		opened, err := js.Stream(ctx, stream.Config.Name)
		if err != nil {
			return false
		}
		consumers := opened.ListConsumers(ctx)
		for consumer := range consumers.Info() {
			if !whole(consumer.Cluster) {
				return false
			}
		}
		if consumers.Err() != nil {
			return false
		}
	}
	return streams.Err() == nil
}
