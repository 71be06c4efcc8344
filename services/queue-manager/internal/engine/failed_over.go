package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const (
	// permissionLookups bounds the requests for last messages at once: a term waits for each.
	permissionLookups = 8
	// permissionsRead bounds the time for all of them, permissionAgain is the pause after a refusal.
	permissionsRead = 5 * time.Second
	permissionAgain = 250 * time.Millisecond
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
// terms. It comes before the relay, which empties the outbox. A term in which NATS does not tell of
// a cluster takes it for ready: rights that are missing would end every term.
func (l *leader) rememberFailedOver(ctx context.Context) error {
	var names []string
	for _, c := range l.state.ClusterLoads() {
		names = append(names, c.Name)
	}
	clusters, unread, err := failedOver(ctx, l.Store, l.Bus, names)
	if err != nil {
		return err
	}
	if unread != nil {
		l.Logger.Warn("cannot read whether gangs of some clusters have failed over; taking these clusters for ready; check the rights of queue-manager in NATS", zap.Error(unread))
	}
	if len(clusters) == 0 {
		return ctx.Err()
	}
	l.do(decisionlog.Input{Kind: decisionlog.FailedOver, Clusters: clusters})
	return nil
}

// failedOver returns the clusters from which gangs have failed over, and whose dispatchers have
// not been granted the permission since: the last message on it grants nothing. unread says of
// which clusters NATS has not told it.
func failedOver(ctx context.Context, outbox unsent, nats lastMessages, clusters []string) (all []state.FailedOver, unread, err error) {
	subjects := make([]string, len(clusters))
	for i, name := range clusters {
		subjects[i] = event.PermissionSubject(name)
	}
	pending, err := outbox.Unsent(ctx, subjects, 0, mostUnsent)
	if err != nil {
		return nil, nil, fmt.Errorf("read which clusters' gangs have failed over: %w", err)
	}
	last, failed := make([][]byte, len(clusters)), make([]error, len(clusters))
	bounded, cancel := context.WithTimeout(ctx, permissionsRead)
	defer cancel()
	var group errgroup.Group
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
			last[i], failed[i] = lastPermission(bounded, nats, subject)
			return nil
		})
	}
	_ = group.Wait() // no part returns an error
	for i, data := range last {
		if failed[i] != nil {
			failed[i] = fmt.Errorf("cluster %q: %w", clusters[i], failed[i])
		}
		if f, is := readFailedOver(data); is && f.Cluster == clusters[i] {
			all = append(all, f)
		}
	}
	return all, errors.Join(failed...), nil
}

// lastPermission returns the last message on the permission of a cluster. A refusal may pass, as while
// the servers of NATS elect the leader of the stream: it tries again until ctx ends.
func lastPermission(ctx context.Context, nats lastMessages, subject string) ([]byte, error) {
	for {
		d, err := nats.LastMessage(ctx, bus.DispatchStream, subject)
		switch {
		case err == nil && d == nil:
			return nil, nil
		case err == nil:
			return d.Data, nil
		case pause.For(ctx, permissionAgain) != nil:
			return nil, err
		}
	}
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
