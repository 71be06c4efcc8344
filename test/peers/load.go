package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"muster.dev/muster/pkg/service/pause"
)

const (
	// clientsAtOnce is how many requests of the load are under way.
	clientsAtOnce = 32
	// retryAfter is the pause after a list that failed.
	retryAfter = 100 * time.Millisecond
)

// gang is a head and a worker.
type gang struct {
	name, queue string
	gpus        int
}

// gangs returns count of them, in turn of the queues.
func gangs(prefix string, count, queues, gpus int) (all []gang) {
	for i := range count {
		all = append(all, gang{fmt.Sprintf("%s-%d", prefix, i), queueName(i % queues), gpus})
	}
	return all
}

func names(all []gang) (names []string) {
	for _, g := range all {
		names = append(names, g.name)
	}
	return names
}

// submit creates a gang with the label of its queue.
func (s *site) submit(ctx context.Context, g gang) error {
	object, err := s.kind.object(g, s.label)
	if err != nil {
		return err
	}
	return s.createObject(ctx, s.kind.resource, namespace, object)
}

func (s *site) submitAll(ctx context.Context, all []gang) error {
	return each(ctx, all, s.submit)
}

func (s *site) deleteAll(ctx context.Context, all []gang) error {
	return each(ctx, all, func(ctx context.Context, g gang) error {
		if err := s.dynamic.Resource(s.kind.resource).Namespace(namespace).Delete(ctx, g.name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete %s %q: %w", s.kind.resource.Resource, g.name, err)
		}
		return nil
	})
}

func each(ctx context.Context, all []gang, do func(context.Context, gang) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clientsAtOnce)
	for _, g := range all {
		group.Go(func() error { return do(ctx, g) })
	}
	return group.Wait()
}

// admissions notes when each gang is first seen admitted: its object is there, and not suspended.
type admissions struct {
	mu   sync.Mutex
	at   map[string]time.Time
	news chan struct{}
}

// watch begins to note admissions, until the context ends. The API server drops a watcher
// that falls behind, so what was missed is listed and the watch begun again.
func (s *site) watch(ctx context.Context) (*admissions, error) {
	objects := s.dynamic.Resource(s.watched).Namespace(namespace)
	watching, err := objects.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.watched.Resource, err)
	}
	seen := &admissions{at: map[string]time.Time{}, news: make(chan struct{}, 1)}
	go func() {
		for ctx.Err() == nil {
			seen.follow(watching)
			list, err := objects.List(ctx, metav1.ListOptions{})
			if err != nil {
				_ = pause.For(ctx, retryAfter) // the loop ends with the context
				continue
			}
			for i := range list.Items {
				seen.note(&list.Items[i])
			}
			if again, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}); err == nil {
				watching = again
			}
		}
	}()
	return seen, nil
}

func (a *admissions) follow(watching watch.Interface) {
	defer watching.Stop()
	for change := range watching.ResultChan() {
		if object, ok := change.Object.(*unstructured.Unstructured); ok && change.Type != watch.Deleted {
			a.note(object)
		}
	}
}

func (a *admissions) note(object *unstructured.Unstructured) {
	now := time.Now()
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended { // absent is false
		return
	}
	a.mu.Lock()
	if _, known := a.at[object.GetName()]; !known {
		a.at[object.GetName()] = now
	}
	a.mu.Unlock()
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// await returns when at least count of the gangs are admitted, with the time of the last.
func (a *admissions) await(ctx context.Context, names []string, count int) (last time.Time, err error) {
	for {
		a.mu.Lock()
		admitted := 0
		for _, name := range names {
			if at, known := a.at[name]; known {
				if admitted++; at.After(last) {
					last = at
				}
			}
		}
		a.mu.Unlock()
		if admitted >= count {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("%d of %d gangs are admitted, want %d: %w", admitted, len(names), count, ctx.Err())
		case <-a.news:
		}
	}
}

// awaitWaiting returns when this many gangs wait, by the peer's own count.
func (s *site) awaitWaiting(ctx context.Context, count int) error {
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for {
		waiting, err := s.waiting(ctx)
		if err != nil {
			return err
		}
		if waiting >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d gangs wait, want %d: %w", waiting, count, ctx.Err())
		case <-poll.C:
		}
	}
}
