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
	// Session is the latest; a new one must be later, whatever became of the lease.
	// One that was made up, too far ahead to be heard, does not count.
	Session int64
	// Told names the nodes and gangs that were said to be there.
	Told []picture.Key
	last map[string]uint64 // the sequence of each subject's last message
}

// ReadHistory reads what the stream holds of the cluster.
func ReadHistory(ctx context.Context, b *bus.Bus, cluster string, logger *zap.Logger) (History, error) {
	values, err := b.LastValues(ctx, bus.CapacityStream, bus.CapacityFilter(cluster))
	if err != nil {
		return History{}, fmt.Errorf("read what was published of cluster %q: %w", cluster, err)
	}
	return HistoryOf(values, logger), nil
}

// HistoryOf reads the last values of the cluster's subjects.
func HistoryOf(values []bus.Delivery, logger *zap.Logger) (history History) {
	history.last = make(map[string]uint64, len(values))
	for _, value := range values {
		history.last[value.Subject] = value.Sequence
		_, payload, err := value.Event()
		if err != nil {
			// A newer version of Muster may have written it; its readers decide.
			logger.Warn("skipping a message of the capacity stream", zap.Error(err))
			continue
		}
		history.add(payload)
		if session := versionOf(payload).Session; event.Credible(session, value.Stored) {
			history.Session = max(history.Session, session)
		}
	}
	return history
}

func (h *History) add(payload event.Payload) {
	switch told := payload.(type) {
	case *event.NodeObserved:
		h.Told = append(h.Told, picture.Key{Node: told.Node.Name})
	case *event.GangObserved:
		if len(told.Pods) > 0 {
			h.Told = append(h.Told, picture.Key{Gang: told.Workload})
		}
	}
}

func versionOf(payload event.Payload) event.Version {
	switch told := payload.(type) {
	case *event.NodeObserved:
		return told.Version
	case *event.GangObserved:
		return told.Version
	case *event.NodeRemoved:
		return told.Version
	case *event.CapacitySynced:
		return told.Version
	}
	return event.Version{}
}

// sessionOf reads the session of a message of the stream.
func sessionOf(d bus.Delivery) (int64, error) {
	_, payload, err := d.Event()
	if err != nil {
		return 0, err
	}
	return versionOf(payload).Session, nil
}
