// Package status states how Muster's own parts are: what Postgres, NATS and the clusters'
// last reports show, and what a person has to look at.
//
// It only reads, and every part is bounded in time, because it is asked when something
// does not answer. It needs no leader. It is not for workloads (package store has the
// queries on them).
package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
)

// Database is what package store knows.
type Database interface {
	Status(ctx context.Context, answer *query.StatusAnswer) error
}

// NATS is what package bus knows.
type NATS interface {
	Condition(ctx context.Context) bus.Condition
	LastMessage(ctx context.Context, stream, subject string) (*bus.Delivery, error)
}

const (
	// maxClusters bounds the clusters of an answer, lookups the questions about them at once.
	maxClusters = 100
	lookups     = 8
	// silentLimit bounds the text of an error, in bytes.
	silentLimit = 300
	// noted is how long the leader may take to note that a cluster is silent: it looks every
	// second. A cluster that is shown as silent gets no new gang.
	noted = 2 * time.Second
)

// Of asks Postgres and NATS at once, then NATS about each cluster. A cluster is silent when
// its watcher has not reported for the given time.
func Of(ctx context.Context, database Database, nats NATS, silence time.Duration, now time.Time) query.StatusAnswer {
	answer := query.StatusAnswer{At: now}
	var parts sync.WaitGroup
	parts.Go(func() {
		bounded, cancel := context.WithTimeout(ctx, query.StatusTimeout)
		defer cancel()
		if err := database.Status(bounded, &answer); err != nil {
			answer.Postgres.Silent = why(bounded, err)
		}
	})
	var condition query.NATSStatus
	parts.Go(func() {
		bounded, cancel := context.WithTimeout(ctx, query.StatusTimeout)
		defer cancel()
		condition = natsStatus(bounded, nats.Condition(bounded))
	})
	parts.Wait()
	answer.NATS = condition
	hear(ctx, nats, &answer)
	for i := range answer.Clusters {
		answer.Clusters[i].State = answer.Clusters[i].StateAt(now, silence+noted)
	}
	answer.Attention, answer.About = attention(answer)
	answer.Notes = notes(answer)
	return answer
}

func natsStatus(ctx context.Context, c bus.Condition) query.NATSStatus {
	n := query.NATSStatus{
		Silent: why(ctx, c.Failed), Version: c.Version, Server: c.Server, Cluster: c.Cluster, Servers: c.Servers,
		StoredBytes: c.Stored, LimitBytes: c.Limit,
	}
	for _, s := range c.Streams {
		n.Streams = append(n.Streams, query.StreamStatus{
			Name: s.Name, Silent: why(ctx, s.Failed), Messages: s.Messages, Bytes: s.Bytes, LimitBytes: s.Limit, Oldest: s.Oldest,
			Copies: s.Copies, Leader: s.Leader, Away: s.Away,
		})
	}
	return n
}

// hear looks up when the watcher and the dispatcher of each cluster reported last.
func hear(ctx context.Context, nats NATS, answer *query.StatusAnswer) {
	if len(answer.Clusters) > maxClusters {
		answer.Clusters = answer.Clusters[:maxClusters]
	}
	bounded, cancel := context.WithTimeout(ctx, query.StatusTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(lookups)
	for i := range answer.Clusters {
		group.Go(func() error {
			c := &answer.Clusters[i]
			var watcher, dispatcher error
			c.WatcherHeard, watcher = lastReport(bounded, nats, bus.CapacityStream, event.CapacityFilter(c.Name), answer.At)
			c.DispatcherHeard, dispatcher = lastReport(bounded, nats, bus.StatusStream, event.ClusterStatusFilter(c.Name), answer.At)
			c.Silent = why(bounded, errors.Join(watcher, dispatcher))
			c.FailedOver = failedOver(bounded, nats, c.Name)
			return nil
		})
	}
	_ = group.Wait() // no part returns an error
}

// failedOver returns since when the gangs of a cluster have failed over, if its dispatcher has not
// asked for the permission since: the last message on it grants nothing. It is zero else, and where
// NATS does not answer, which other parts of the answer name. It makes no consumer: NATS allows
// 1,000 a stream, and clients ask for the status as often as they like.
func failedOver(ctx context.Context, nats NATS, cluster string) time.Time {
	last, err := nats.LastMessage(ctx, bus.DispatchStream, event.PermissionSubject(cluster))
	if err != nil || last == nil {
		return time.Time{}
	}
	_, payload, err := last.Event()
	if g, is := payload.(*event.PermissionGranted); err != nil || !is || g.For != 0 || g.Cluster != cluster {
		return time.Time{}
	}
	return last.Stored
}

// lastReport is when the last message of a filter was stored; zero when there is none. It
// fails for a message that its part does not publish, because that is no sign of life.
func lastReport(ctx context.Context, nats NATS, stream, filter string, now time.Time) (time.Time, error) {
	last, err := nats.LastMessage(ctx, stream, filter)
	if err != nil || last == nil {
		return time.Time{}, err
	}
	_, payload, err := last.Event()
	if err == nil {
		err = event.CheckObservation(last.Subject, payload, now)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("the last message on %.200s is no report: %w", last.Subject, err)
	}
	return last.Stored, nil
}

// why returns on one short line why a part has not answered; empty for no error.
func why(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return fmt.Sprintf("no answer within %s", query.StatusTimeout)
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > silentLimit {
		text = strings.ToValidUTF8(text[:silentLimit], "") + " ..."
	}
	return text
}
