package engine

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const (
	// permissionLookups bounds the requests for last messages at once: a term waits for each.
	permissionLookups = 8
	// mostUnsent bounds what is read of the outbox. It has few of these messages: while NATS
	// does not take them, it has no questions either.
	mostUnsent = 100_000
)

// unsent is the outbox.
type unsent interface {
	Unsent(ctx context.Context, prefixes []string, after int64, limit int) ([]store.Outgoing, error)
}

// lastMessages has the last message of each subject.
type lastMessages interface {
	LastMessage(ctx context.Context, stream, subject string) (*bus.Delivery, error)
}

// rememberFailedOver has the state know from which clusters gangs have failed over in earlier
// terms. It comes before the relay, which empties the outbox.
func (l *leader) rememberFailedOver(ctx context.Context) error {
	var names []string
	for _, c := range l.state.ClusterLoads() {
		names = append(names, c.Name)
	}
	clusters, err := failedOver(ctx, l.Store, l.Bus, names)
	if err != nil || len(clusters) == 0 {
		return err
	}
	l.do(decisionlog.Input{Kind: decisionlog.FailedOver, Clusters: clusters})
	return nil
}

// failedOver returns the clusters from which gangs have failed over, and whose dispatchers have
// not been granted the permission since: the last message on it grants nothing.
func failedOver(ctx context.Context, outbox unsent, nats lastMessages, clusters []string) (all []state.FailedOver, err error) {
	subjects := make([]string, len(clusters))
	for i, name := range clusters {
		subjects[i] = event.PermissionSubject(name)
	}
	pending, err := outbox.Unsent(ctx, subjects, 0, mostUnsent)
	if err != nil {
		return nil, fmt.Errorf("read which clusters' gangs have failed over: %w", err)
	}
	last := make([][]byte, len(clusters))
	group, bounded := errgroup.WithContext(ctx)
	group.SetLimit(permissionLookups)
	for i, subject := range subjects {
		for _, m := range pending { // ends with the last one
			if m.Subject == subject {
				last[i] = m.Message
			}
		}
		if last[i] != nil {
			continue
		}
		group.Go(func() error {
			d, err := nats.LastMessage(bounded, bus.DispatchStream, subject)
			if err != nil {
				return fmt.Errorf("read whether gangs of cluster %q have failed over: %w", clusters[i], err)
			}
			if d != nil {
				last[i] = d.Data
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, data := range last {
		if f, is := readFailedOver(data); is && f.Cluster == clusters[i] {
			all = append(all, f)
		}
	}
	return all, nil
}

// readFailedOver reads a message on the permission of a cluster. One that is none, which only a
// forger has published, is no sign that gangs have failed over.
func readFailedOver(data []byte) (f state.FailedOver, is bool) {
	envelope, err := event.Parse(data)
	if data == nil || err != nil {
		return f, false
	}
	payload, err := event.Decode(envelope)
	granted, is := payload.(*event.PermissionGranted)
	if err != nil || !is || granted.For != 0 {
		return f, false
	}
	return state.FailedOver{Cluster: granted.Cluster, Session: granted.Session, At: envelope.Time}, true
}
