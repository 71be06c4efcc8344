package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// publisher is the bus.
type publisher interface {
	PublishAsync(subject string, e event.Envelope) (bus.Published, error)
}

// homes answers the intakes of further clusters. Each may submit and cancel the objects of its
// own cluster, and learns of no other workload: their keys are in clusters that may be another's.
type homes struct {
	bus publisher
	// find returns a page of workloads, with their estimates.
	find func(context.Context, query.WorkloadsRequest) (query.WorkloadsAnswer, error)
	// last returns the last message of a subject of a stream; nil when there is none.
	last func(ctx context.Context, stream, subject string) (*bus.Delivery, error)
	// reading has a place for each message that is being decoded.
	reading chan struct{}
}

// readAtOnce bounds the messages that are decoded at once: decoded, one may take 10 MB.
const readAtOnce = 2

func newHomes(b *bus.Bus, find func(context.Context, query.WorkloadsRequest) (query.WorkloadsAnswer, error)) homes {
	return homes{b, find, b.LastMessage, make(chan struct{}, readAtOnce)}
}

// answer answers a request of the intake of a cluster about a queue.
func (h homes) answer(ctx context.Context, cluster, queue string, r query.HomeRequest) (query.HomeAnswer, error) {
	asks := len(r.Message) == 0
	switch {
	case !asks && len(r.IDs) == 0 && !r.Waiting && !r.Placed:
		sequence, err := h.publish(ctx, cluster, queue, r)
		return query.HomeAnswer{Sequence: sequence}, err
	case asks && len(r.IDs) > 0 && !r.Waiting && !r.Placed && r.Statuses:
		return h.statuses(ctx, cluster, r.IDs)
	case asks && len(r.IDs) > 0 && !r.Waiting && !r.Placed:
		return h.page(ctx, cluster, query.WorkloadsRequest{IDs: r.IDs})
	case asks && len(r.IDs) == 0 && r.Waiting && !r.Placed:
		return h.page(ctx, cluster, query.WorkloadsRequest{Queue: queue, Phases: []workload.Phase{workload.Queued}, After: r.After})
	case asks && len(r.IDs) == 0 && !r.Waiting && r.Placed:
		return h.placed(ctx, cluster, r.After)
	}
	return query.HomeAnswer{}, errors.New("the request has not exactly one of message, ids, placed and waiting")
}

// page returns a page of the workloads whose objects are in the cluster.
func (h homes) page(ctx context.Context, cluster string, r query.WorkloadsRequest) (query.HomeAnswer, error) {
	r.Home = cluster
	page, err := h.find(ctx, r)
	if err != nil {
		return query.HomeAnswer{}, err
	}
	return query.HomeAnswer{Workloads: page.Workloads, Next: page.Next}, nil
}

// publish stores a message of the intake of a cluster with those of the queue.
func (h homes) publish(ctx context.Context, cluster, queue string, r query.HomeRequest) (uint64, error) {
	envelope, payload, err := h.read(ctx, r)
	if cancels, is := payload.(*event.WorkloadCancel); is && r.UID == "" {
		return h.cancelVanished(ctx, cluster, queue, envelope, cancels)
	}
	if err == nil {
		err = checkOwn(payload, cluster, queue, r.UID)
	}
	if err != nil {
		return 0, fmt.Errorf("message of cluster %q about queue %q: %w", cluster, queue, err)
	}
	return h.store(ctx, cluster, queue, envelope, payload)
}

// read returns the message of a request, within its bounds.
func (h homes) read(ctx context.Context, r query.HomeRequest) (envelope event.Envelope, payload event.Payload, err error) {
	if len(r.UID) > longestUID {
		return envelope, nil, fmt.Errorf("uid: %.80q has %d bytes; want that of the object", r.UID, len(r.UID))
	}
	envelope, err = event.Parse(r.Message)
	if err != nil {
		return envelope, nil, err
	}
	if !slices.Contains(homeTypes(), envelope.Type) {
		return envelope, nil, fmt.Errorf("type %.80q: want %s", envelope.Type, strings.Join(homeTypes(), " or "))
	}
	if longest := max(len(envelope.ID), len(envelope.Source), len(envelope.Traceparent)); longest > longestAttribute {
		return envelope, nil, fmt.Errorf("an attribute of the CloudEvent has %d bytes; want at most %d", longest, longestAttribute)
	}
	payload, err = h.decode(ctx, envelope)
	return envelope, payload, err
}

// checkOwn refuses what is not about an object of the cluster.
func checkOwn(payload event.Payload, cluster, queue, uid string) error {
	if uid == "" {
		return errors.New("uid: is missing; want that of the object")
	}
	id := event.WorkloadID(workload.ByKubernetes+"/"+cluster, uid)
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		return checkHome(p, cluster, queue, id)
	case *event.WorkloadCancel:
		if p.Workload != id {
			return fmt.Errorf("workload %.80q is not that of object %.80q of cluster %q", p.Workload, uid, cluster)
		}
	}
	return nil
}

// store publishes a message that was found to be about the cluster's own.
func (h homes) store(ctx context.Context, cluster, queue string, envelope event.Envelope, payload event.Payload) (uint64, error) {
	// NATS drops a message with the id of another one: no cluster may choose that of another's.
	made, err := event.New("home/"+cluster+"/"+envelope.ID, envelope.Source, envelope.Time, payload)
	if err != nil {
		return 0, err
	}
	made.Traceparent = envelope.Traceparent
	published, err := h.bus.PublishAsync(event.WorkloadSubject(queue), made)
	if err != nil {
		return 0, err
	}
	return published.Stored(ctx)
}

const (
	longestUID       = 128
	longestAttribute = 1024
)

// homeTypes are the messages that the intake of a further cluster may have stored.
func homeTypes() []string {
	return []string{(*event.WorkloadSubmitted)(nil).EventType(), (*event.WorkloadCancel)(nil).EventType()}
}

// decode returns the payload of a message, once there is a place for it.
func (h homes) decode(ctx context.Context, envelope event.Envelope) (event.Payload, error) {
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return nil, query.Busy("others are being read; try again")
	}
	payload, err := event.Decode(envelope)
	if err != nil {
		return nil, err
	}
	if submitted, is := payload.(*event.WorkloadSubmitted); is {
		submitted.Former, submitted.MessageID = "", "" // which only other intakes set
	}
	if err := event.CheckReported(payload, time.Now()); err != nil {
		return nil, err
	}
	return payload, nil
}

// checkHome refuses a submission that is not of an object of the cluster, to the queue.
func checkHome(s *event.WorkloadSubmitted, cluster, queue string, id workload.ID) error {
	w := &s.Workload
	switch {
	case w.ID != id:
		return fmt.Errorf("workload %.80q is not that of the object", w.ID)
	case w.MadeIn() != cluster:
		return fmt.Errorf("submitter %.80q is none of the cluster; want %s/%s/USER", w.Submitter, workload.ByKubernetes, cluster)
	case w.Queue != queue:
		return fmt.Errorf("queue %.80q of the workload is another one", w.Queue)
	case len(s.Manifest) == 0 || string(s.Manifest) == "null":
		return errors.New("the manifest is missing")
	}
	return nil
}
