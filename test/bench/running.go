package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// gangPods is how many pods a gang of a burst has: a head and a worker.
const gangPods = 2

// runs notes when gangs run: when all of their pods are ready.
type runs struct {
	mu    sync.Mutex
	ready map[string]map[string]bool // names of ready pods, by RayCluster
	gangs int                        // that run
	last  time.Time
	news  chan struct{}
}

// followPods notes which gangs of the site's namespace run. Each pod is given to made when it is
// first seen; made may be nil.
func (s *site) followPods(ctx context.Context, made func(*corev1.Pod)) (*runs, error) {
	r := &runs{ready: map[string]map[string]bool{}, news: make(chan struct{}, 1)}
	informer := informers.NewSharedInformerFactoryWithOptions(s.kube, 0, informers.WithNamespace(s.namespace)).Core().V1().Pods().Informer()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				if made != nil {
					made(pod)
				}
				r.note(pod)
			}
		},
		UpdateFunc: func(_, object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				r.note(pod)
			}
		},
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, ctx.Err()
	}
	return r, nil
}

func (r *runs) note(pod *corev1.Pod) {
	now, cluster := time.Now(), pod.Labels["ray.io/cluster"]
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isReady(pod) || cluster == "" || r.ready[cluster][pod.Name] {
		return
	}
	if r.ready[cluster] == nil {
		r.ready[cluster] = map[string]bool{}
	}
	if r.ready[cluster][pod.Name] = true; len(r.ready[cluster]) != gangPods {
		return
	}
	r.gangs, r.last = r.gangs+1, now
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// await returns when the given number of gangs has run.
func (r *runs) await(ctx context.Context, gangs int) (last time.Time, err error) {
	for {
		r.mu.Lock()
		running, last := r.gangs, r.last
		r.mu.Unlock()
		if running >= gangs {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("%d of %d gangs run: %w", running, gangs, ctx.Err())
		case <-r.news:
		}
	}
}
