package publish

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

// History is what earlier watchers of the cluster have published and the stream still
// holds.
type History struct {
	// Session is the latest; a new one must be later, even if the lease was lost. A
	// forged one that is too far ahead to be credible does not count.
	Session int64
	// Present names the nodes, gangs and namespaces that were published as present.
	Present []observed.Key
	// Kinds are those of the last list. They hold until the watcher has read them itself: an
	// API server may be slow to say, and its kinds seldom change.
	Kinds []workload.ObjectKind
	last  map[string]uint64 // the sequence of each subject's last message
}

// ReadHistory reads what the stream holds of the cluster.
func ReadHistory(ctx context.Context, b *bus.Bus, cluster string, logger *zap.Logger) (History, error) {
	values, err := b.LastValues(ctx, bus.CapacityStream, event.CapacityFilter(cluster))
	if err != nil {
		return History{}, fmt.Errorf("read the published state of cluster %q: %w", cluster, err)
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
			// A newer version of Muster may have written it.
			logger.Warn("cannot read a message of the capacity stream; skipping it", zap.Error(err))
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
	switch observation := payload.(type) {
	case *event.NodeObserved:
		h.Present = append(h.Present, observed.Key{Node: observation.Node.Name})
	case *event.GangObserved:
		if len(observation.Pods) > 0 {
			h.Present = append(h.Present, observed.Key{Gang: observation.Workload})
		}
	case *event.NamespaceObserved:
		if !observation.Gone {
			h.Present = append(h.Present, observed.Key{Namespace: observation.Namespace})
		}
	case *event.CapacitySynced:
		if len(observation.Kinds) <= event.MostKinds {
			h.Kinds = slices.Compact(slices.Sorted(slices.Values(observation.Kinds)))
		}
	}
}

func versionOf(payload event.Payload) event.Version {
	switch observation := payload.(type) {
	case *event.NodeObserved:
		return observation.Version
	case *event.GangObserved:
		return observation.Version
	case *event.NamespaceObserved:
		return observation.Version
	case *event.NodeRemoved:
		return observation.Version
	case *event.CapacitySynced:
		return observation.Version
	}
	return event.Version{}
}

// sessionOf reads the session of a message of the stream; 0 for one too far ahead, which
// queue-manager does not believe either.
func sessionOf(d bus.Delivery) (int64, error) {
	_, payload, err := d.Event()
	if err != nil {
		return 0, err
	}
	if session := versionOf(payload).Session; event.Credible(session, d.Stored) {
		return session, nil
	}
	return 0, nil
}
