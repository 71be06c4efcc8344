package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
}

// answer answers a request of the intake of a cluster about a queue.
func (h homes) answer(ctx context.Context, cluster, queue string, r query.HomeRequest) (query.HomeAnswer, error) {
	switch {
	case len(r.Message) > 0 && len(r.IDs) == 0 && !r.Waiting:
		sequence, err := h.publish(ctx, cluster, queue, r)
		return query.HomeAnswer{Sequence: sequence}, err
	case len(r.Message) == 0 && len(r.IDs) > 0 && !r.Waiting:
		return h.page(ctx, cluster, query.WorkloadsRequest{IDs: r.IDs})
	case len(r.Message) == 0 && len(r.IDs) == 0 && r.Waiting:
		return h.page(ctx, cluster, query.WorkloadsRequest{Queue: queue, Phases: []workload.Phase{workload.Queued}, After: r.After})
	}
	return query.HomeAnswer{}, errors.New("the request has not exactly one of message, ids and waiting")
}

// page returns a page of workloads without those whose objects are not in the cluster.
func (h homes) page(ctx context.Context, cluster string, r query.WorkloadsRequest) (query.HomeAnswer, error) {
	page, err := h.find(ctx, r)
	if err != nil {
		return query.HomeAnswer{}, err
	}
	own := slices.DeleteFunc(page.Workloads, func(w workload.Record) bool { return w.Home() != cluster })
	return query.HomeAnswer{Workloads: own, Next: page.Next}, nil
}

// publish stores a message of the intake of a cluster with those of the queue.
func (h homes) publish(ctx context.Context, cluster, queue string, r query.HomeRequest) (uint64, error) {
	envelope, err := event.Parse(r.Message)
	if err != nil {
		return 0, fmt.Errorf("read the message: %w", err)
	}
	payload, err := event.Decode(envelope)
	if err != nil {
		return 0, fmt.Errorf("read the message: %w", err)
	}
	if r.UID == "" {
		return 0, errors.New("uid: is missing; want that of the object")
	}
	id := event.WorkloadID(workload.ByKubernetes+"/"+cluster, r.UID)
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		err = checkHome(p, cluster, queue, id)
	case *event.WorkloadCancel:
		if p.Workload != id {
			err = fmt.Errorf("workload %.80q is not that of object %.80q of cluster %q", p.Workload, r.UID, cluster)
		}
	default:
		err = fmt.Errorf("type %.80q: want %s or %s", envelope.Type, (*event.WorkloadSubmitted)(nil).EventType(), (*event.WorkloadCancel)(nil).EventType())
	}
	if err != nil {
		return 0, fmt.Errorf("message of cluster %q about queue %q: %w", cluster, queue, err)
	}
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

// mostCount bounds the pods of a set as much as those of a gang.
const mostCount = 1_000_000

// checkHome refuses a submission that is not of an object of the cluster, to the queue. It leaves
// out what only other intakes set. Queue-manager checks the rest as it does any submission.
func checkHome(s *event.WorkloadSubmitted, cluster, queue string, id workload.ID) error {
	w := &s.Workload
	s.Former, s.MessageID = "", ""
	switch {
	case w.ID != id:
		return fmt.Errorf("workload %.80q is not that of the object", w.ID)
	case w.Home() != cluster:
		return fmt.Errorf("submitter %.80q is none of the cluster; want %s/%s/USER", w.Submitter, workload.ByKubernetes, cluster)
	case w.Queue != queue:
		return fmt.Errorf("queue %.80q of the workload is another one", w.Queue)
	case !workload.ValidName(w.Namespace) || w.Name == "" || w.Digest == "" || len(w.PodSets) == 0 || !json.Valid(s.Manifest):
		return errors.New("the workload lacks a namespace, a name, a digest, pod sets or its manifest")
	}
	for _, set := range w.PodSets {
		if set.Count < 0 || set.Count > mostCount || set.Later < 0 || set.Later > set.Count || set.MinCount < 0 || set.MinCount > set.Count || set.Step < 0 || set.Resized != 0 {
			return fmt.Errorf("pod set %.80q has count %d, later %d, minCount %d, step %d and resized %d", set.Name, set.Count, set.Later, set.MinCount, set.Step, set.Resized)
		}
	}
	return nil
}
