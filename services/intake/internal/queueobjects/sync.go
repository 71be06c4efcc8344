// Package queueobjects brings the queues that a cluster has as objects of Kueue's
// kinds to queue-manager, by the way that `muster apply` takes, and writes back on
// ClusterQueues and LocalQueues whether they count and what is in them.
//
// It is level-triggered and keeps nothing: each round compares what the cluster
// has with what queue-manager has of this cluster, and asks for the difference.
// What queue-manager refuses is said on the object and asked for again. So it may
// die at any point, and there may be several.
//
// It is not for judging manifests (package kueue) nor for deciding what may stand
// beside what, which is queue-manager's.
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

	"muster.dev/muster/pkg/kueue"
	"muster.dev/muster/pkg/query"
)

// Cluster is the API server.
type Cluster interface {
	Objects() []*unstructured.Unstructured
	WriteStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error
}

// Manager is queue-manager.
type Manager interface {
	Applied(ctx context.Context) (query.AppliedAnswer, error)
	Configure(ctx context.Context, cluster string, request query.ConfigureRequest) (query.ConfigureAnswer, error)
	Queues(ctx context.Context) (query.QueuesAnswer, error)
}

const (
	// gather is how long changes are waited for that come with the first one:
	// a file of objects is one change.
	gather = 100 * time.Millisecond
	// again is when statuses are brought up to date, and what was refused is tried
	// once more.
	again = 5 * time.Second
	// roundTimeout bounds the questions of one round.
	roundTimeout = 15 * time.Second
)

// Sync compares and asks.
type Sync struct {
	Name    string // of the cluster
	Cluster Cluster
	Manager Manager
	Logger  *zap.Logger

	told string // what was last logged as refused
}

// Run makes rounds until ctx ends: after each change, and now and then.
func (s *Sync) Run(ctx context.Context, changed <-chan struct{}) error {
	for {
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("queues of the cluster will be compared again", zap.Duration("after", again), zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		case <-changed:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(gather):
			}
		}
	}
}

// round brings queue-manager to what the cluster has, as far as it goes.
func (s *Sync) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	objects := s.Cluster.Objects()
	wanted, refused := read(objects)
	answer, err := s.Manager.Applied(ctx)
	if err != nil {
		return err
	}
	apply, remove := difference(wanted, answer.Objects, s.Name)
	if err := s.bring(ctx, apply, remove, refused); err != nil {
		return err
	}
	s.log(refused)
	queues, err := s.Manager.Queues(ctx)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if status := statusOf(object, refused[keyOf(object)], queues.Queues, time.Now()); status != nil {
			if err := s.Cluster.WriteStatus(ctx, object, status); err != nil {
				return err
			}
		}
	}
	return nil
}

func keyOf(object *unstructured.Unstructured) kueue.Key {
	return kueue.Key{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// read reads the objects; refused says what is wrong with those that cannot be.
func read(objects []*unstructured.Unstructured) (wanted []kueue.Object, refused map[kueue.Key]string) {
	refused = map[kueue.Key]string{}
	for _, object := range objects {
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

// difference is what queue-manager lacks of the wanted, and has beyond them.
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
	slices.SortStableFunc(remove, func(a, b kueue.Key) int { // what names others goes before them
		return cmp.Compare(slices.Index(order, b.Kind), slices.Index(order, a.Kind))
	})
	return apply, remove
}

// bring asks for all of it, and when that is refused for one after the other, so
// that a fault of one object does not keep the others from counting.
func (s *Sync) bring(ctx context.Context, apply []kueue.Object, remove []kueue.Key, refused map[kueue.Key]string) error {
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

// ask tells a refusal, which says why, from a failure.
func (s *Sync) ask(ctx context.Context, r query.ConfigureRequest) (why string, refused bool, err error) {
	_, err = s.Manager.Configure(ctx, s.Name, r)
	var problem *query.ProblemError
	if errors.As(err, &problem) {
		return problem.Message, true, nil
	}
	return "", false, err
}

// log tells what is refused, when that is news.
func (s *Sync) log(refused map[kueue.Key]string) {
	said := fmt.Sprint(refused)
	if said == s.told {
		return
	}
	s.told = said
	for key, why := range refused {
		s.Logger.Warn("an object of the cluster does not count", zap.Stringer("object", key), zap.String("why", why))
	}
}
