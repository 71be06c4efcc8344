package publish

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/capacity-watcher/internal/picture"
)

// History is what watchers of the cluster have published before and the stream
// still holds.
type History struct {
	// Session is the latest; a new one must be later, also when the machine's
	// clock is behind the former's.
	Session int64
	// Told names the nodes and gangs that were said to be there.
	Told []picture.Key
}

// ReadHistory reads what the stream holds of the cluster.
func ReadHistory(ctx context.Context, b *bus.Bus, cluster string, logger *zap.Logger) (History, error) {
	values, err := b.LastValues(ctx, bus.CapacityStream, bus.CapacityFilter(cluster))
	if err != nil {
		return History{}, fmt.Errorf("read what was published of cluster %q: %w", cluster, err)
	}
	var history History
	for _, value := range values {
		_, payload, err := value.Event()
		if err != nil {
			// A newer version of Muster may have written it; its readers decide.
			logger.Warn("skipping a message of the capacity stream", zap.Error(err))
			continue
		}
		history.add(payload)
	}
	return history, nil
}

func (h *History) add(payload event.Payload) {
	var version event.Version
	switch told := payload.(type) {
	case *event.NodeObserved:
		version = told.Version
		h.Told = append(h.Told, picture.Key{Node: told.Node.Name})
	case *event.GangObserved:
		version = told.Version
		if len(told.Pods) > 0 {
			h.Told = append(h.Told, picture.Key{Gang: told.Workload})
		}
	case *event.NodeRemoved:
		version = told.Version
	case *event.CapacitySynced:
		version = told.Version
	}
	h.Session = max(h.Session, version.Session)
}
