// Package queueobjects syncs the Kueue objects of a cluster to queue-manager, with the
// request of `muster apply`, and writes the status of ClusterQueues, LocalQueues and the
// AdmissionChecks that ask for nodes: whether they are in use, and the counts of queues. A
// finalizer keeps a deleted one in the cluster until queue-manager has removed it; meanwhile
// nothing is admitted through it.
//
// It is level-triggered and has no state: each round compares the objects of the
// cluster with those that queue-manager has from it, and requests the difference.
// A refusal goes to the object's status, and the request is repeated. So the process
// may die at any point, and several may run.
//
// It is not for validating manifests (package kueue), nor for deciding which objects
// conflict, which queue-manager does.
package queueobjects

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// Cluster is the API server.
type Cluster interface {
	Objects() []*unstructured.Unstructured
	objectWriter
}

// objectWriter writes to the objects of queues.
type objectWriter interface {
	WriteStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error
	WriteFinalizers(ctx context.Context, object *unstructured.Unstructured, finalizers []string) (held bool, err error)
	Annotate(ctx context.Context, object *unstructured.Unstructured, key, value string) error
}

// Manager is queue-manager.
type Manager interface {
	Applied(ctx context.Context) (query.AppliedAnswer, error)
	Configure(ctx context.Context, cluster string, request query.ConfigureRequest) (query.ConfigureAnswer, error)
	Queues(ctx context.Context) (query.QueuesAnswer, error)
}

const (
	// settleDelay is the wait for more changes after the first, so that a file of objects
	// is one change.
	settleDelay = 100 * time.Millisecond
	// resyncPeriod is the period of rounds without a change: they update statuses and repeat
	// refused requests.
	resyncPeriod = 5 * time.Second
	// roundTimeout bounds the requests of one round.
	roundTimeout = 15 * time.Second
)

// Sync syncs one cluster's queues.
type Sync struct {
	Name    string // of the cluster
	Cluster Cluster
	Manager Manager
	// Requests is asked where the cluster has an AdmissionCheck that asks for nodes.
	Requests RequestAPI
	Logger   *zap.Logger

	logged string          // the refusals that were last logged
	unheld map[string]bool // namespaces without the right to write finalizers, as logged
}

// Run makes rounds until ctx ends: after each change, and periodically.
func (s *Sync) Run(ctx context.Context, changed <-chan struct{}) error {
	for {
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("cannot sync the queues; retrying", zap.Duration("after", resyncPeriod), zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(resyncPeriod):
		case <-changed:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(settleDelay):
			}
		}
	}
}

// round applies the cluster's objects to queue-manager and updates their status.
func (s *Sync) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	objects := s.Cluster.Objects()
	if err := s.hold(ctx, objects); err != nil {
		return err
	}
	wanted, refused := read(objects)
	answer, err := s.Manager.Applied(ctx)
	if err != nil {
		return err
	}
	apply, remove := difference(wanted, answer.Objects, s.Name)
	if err := s.applyChanges(ctx, apply, remove, refused); err != nil {
		return err
	}
	if err := s.stop(ctx, objects, answer.Objects, remove, refused); err != nil {
		return err
	}
	unreleased := s.release(ctx, objects, refused)
	s.log(refused)
	return errors.Join(unreleased, s.writeStatuses(ctx, objects, refused))
}

// writeStatuses writes on the objects what counts of them. One that cannot be written stops no
// other.
func (s *Sync) writeStatuses(ctx context.Context, objects []*unstructured.Unstructured, refused map[kueue.Key]string) error {
	queues, err := s.Manager.Queues(ctx)
	if err != nil {
		return err
	}
	v := view{refused: refused, objects: objects, answer: queues}
	var failed []error
	if v.unserved, err = s.unserved(ctx, objects); err != nil {
		failed = append(failed, err)
	}
	unknown := err != nil
	for _, object := range objects {
		if err := s.annotate(ctx, object, refused[keyOf(object)]); err != nil {
			failed = append(failed, err)
		}
		if unknown && v.concernsNodes(object) { // what is not known is no verdict
			continue
		}
		if status := statusOf(object, v, time.Now()); status != nil {
			if err := s.Cluster.WriteStatus(ctx, object, status); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

func keyOf(object *unstructured.Unstructured) kueue.Key {
	return kueue.Key{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// read parses the objects that stay; refused has the errors of invalid ones.
func read(objects []*unstructured.Unstructured) (wanted []kueue.Object, refused map[kueue.Key]string) {
	refused = map[kueue.Key]string{}
	for _, object := range objects {
		if isDeleted(object) {
			continue
		}
		encoded, err := json.Marshal(object.Object)
		var parsed kueue.Object
		if err == nil {
			parsed, err = kueue.ParseOne(encoded)
		}
		if err != nil {
			refused[keyOf(object)] = err.Error()
			continue
		}
		wanted = append(wanted, parsed)
	}
	order := kueue.Kinds()
	slices.SortStableFunc(wanted, func(a, b kueue.Object) int {
		return cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind))
	})
	return wanted, refused
}

// difference returns the wanted objects that queue-manager lacks, and the objects from
// this cluster that it has in excess.
func difference(wanted []kueue.Object, present []query.Applied, cluster string) (apply []kueue.Object, remove []kueue.Key) {
	of, here := map[kueue.Key]query.Applied{}, map[kueue.Key]bool{}
	for _, p := range present {
		of[p.Key] = p
	}
	for _, w := range wanted {
		here[w.Key] = true
		if p, known := of[w.Key]; !known || p.Origin != cluster || !bytes.Equal(p.Manifest, w.Manifest) {
			apply = append(apply, w)
		}
	}
	for _, p := range present {
		if p.Origin == cluster && !here[p.Key] {
			remove = append(remove, p.Key)
		}
	}
	order := kueue.Kinds()
	slices.SortStableFunc(remove, func(a, b kueue.Key) int { // referring objects go before those they refer to
		return cmp.Compare(slices.Index(order, b.Kind), slices.Index(order, a.Kind))
	})
	return apply, remove
}

// applyChanges requests all changes at once. If that is refused it requests one after the
// other, so that one bad object does not block the others.
func (s *Sync) applyChanges(ctx context.Context, apply []kueue.Object, remove []kueue.Key, refused map[kueue.Key]string) error {
	if len(apply) == 0 && len(remove) == 0 {
		return nil
	}
	all := query.ConfigureRequest{Delete: remove}
	for _, object := range apply {
		all.Apply = append(all.Apply, object.Manifest)
	}
	if _, refusal, err := s.ask(ctx, all); err != nil || !refusal {
		return err
	}
	each := func(key kueue.Key, r query.ConfigureRequest) error {
		why, refusal, err := s.ask(ctx, r)
		if refusal {
			refused[key] = why
		}
		return err
	}
	for _, object := range apply {
		if err := each(object.Key, query.ConfigureRequest{Apply: []json.RawMessage{object.Manifest}}); err != nil {
			return err
		}
	}
	for _, key := range remove {
		if err := each(key, query.ConfigureRequest{Delete: []kueue.Key{key}}); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a request; it separates a refusal, with its reason, from a failure. A busy
// queue-manager has not judged the request, so that is a failure.
func (s *Sync) ask(ctx context.Context, r query.ConfigureRequest) (why string, refused bool, err error) {
	_, err = s.Manager.Configure(ctx, s.Name, r)
	var problem *query.ProblemError
	if errors.As(err, &problem) && !problem.Busy {
		return problem.Message, true, nil
	}
	return "", false, err
}

// log logs the refusals if they have changed.
func (s *Sync) log(refused map[kueue.Key]string) {
	all := fmt.Sprint(refused)
	if all == s.logged {
		return
	}
	s.logged = all
	for key, why := range refused {
		s.Logger.Warn("queue object refused", zap.Stringer("object", key), zap.String("reason", why))
	}
}
