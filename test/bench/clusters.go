package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/test/stack"
)

var rayClusters = ray.Resource("rayclusters")

// createByHand creates the same RayCluster that is submitted to Muster, as
// kubectl would, and returns how long the API server took.
func (s *site) createByHand(ctx context.Context, name string, workers int) (time.Duration, error) {
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(stack.RayCluster(name, workers, 1)), &object.Object); err != nil {
		return 0, err
	}
	began := time.Now()
	_, err := s.dynamic.Resource(rayClusters).Namespace(s.namespace).Create(ctx, &object, metav1.CreateOptions{})
	return time.Since(began), err
}

// submit publishes a submission without waiting for the server's answer.
func (s *site) submit(name string) (bus.Published, error) {
	return s.stack.Bus.PublishAsync(event.SubmitSubject("default"), event.Envelope{
		SpecVersion: event.SpecVersion, ID: name, Source: "bench", Type: event.SubmitType,
		DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster(name, 1, 1)),
	})
}

// retryAfter is the pause before another list after one that failed.
const retryAfter = 100 * time.Millisecond

// sightings notes when each RayCluster is first seen in the API server.
type sightings struct {
	mu   sync.Mutex
	at   map[string]time.Time
	news chan struct{}
}

// watch begins to note RayClusters, of which it is sent the metadata alone, for
// this process should not be what is measured. The API server drops a watcher
// that falls behind, so what was missed is listed and the watch begun again.
func (s *site) watch(ctx context.Context) (*sightings, error) {
	clusters := s.metadata.Resource(rayClusters).Namespace(s.namespace)
	watching, err := clusters.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	seen := &sightings{at: map[string]time.Time{}, news: make(chan struct{}, 1)}
	go func() {
		for ctx.Err() == nil {
			seen.follow(watching)
			list, err := clusters.List(ctx, metav1.ListOptions{})
			if err != nil {
				_ = pause.For(ctx, retryAfter) // the loop ends with ctx
				continue
			}
			for _, item := range list.Items {
				seen.note(item.Name)
			}
			again, err := clusters.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
			if err == nil {
				watching = again
			}
		}
	}()
	return seen, nil
}

// follow notes what a watch brings until it ends.
func (s *sightings) follow(watching watch.Interface) {
	defer watching.Stop()
	for change := range watching.ResultChan() {
		if object, ok := change.Object.(*metav1.PartialObjectMetadata); ok {
			s.note(object.Name)
		}
	}
}

func (s *sightings) note(name string) {
	now := time.Now()
	s.mu.Lock()
	if _, known := s.at[name]; !known {
		s.at[name] = now
	}
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// await returns when the number of RayClusters of the given prefix has been seen.
func (s *sightings) await(ctx context.Context, names []string) (last time.Time, err error) {
	for {
		s.mu.Lock()
		missing := 0
		for _, name := range names {
			at, seen := s.at[name]
			if !seen {
				missing++
			} else if at.After(last) {
				last = at
			}
		}
		s.mu.Unlock()
		if missing == 0 {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("%d of %d RayClusters were not created: %w", missing, len(names), ctx.Err())
		case <-s.news:
		}
	}
}
