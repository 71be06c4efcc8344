package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/kube"
)

// The steps of a pod's start, as the API server shows them.
const (
	made = iota
	ungated
	bound
	ready
	steps
)

var stepNames = [steps]string{"made", "without gate", "bound", "ready"}

// podTimes are when the first and the last pod of a RayCluster came to each step.
type podTimes struct {
	first, last [steps]time.Time
	seen        [steps]map[types.UID]bool
}

// podTimes follows the pods of a RayCluster until the given number is ready. Done delivers
// the result once; ctx ends the following.
func (s *site) podTimes(ctx context.Context, cluster string, pods int) (done <-chan *podTimes, err error) {
	informer := informers.NewSharedInformerFactoryWithOptions(s.kube, 0, informers.WithNamespace(s.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "ray.io/cluster=" + cluster })).Core().V1().Pods().Informer()
	result, times := make(chan *podTimes, 1), &podTimes{}
	for i := range times.seen {
		times.seen[i] = map[types.UID]bool{}
	}
	note := func(object any) { // one at a time
		if pod, ok := object.(*corev1.Pod); ok && len(times.seen[ready]) < pods {
			if times.note(pod, time.Now()); len(times.seen[ready]) == pods {
				result <- times
			}
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, object any) { note(object) }}); err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, ctx.Err()
	}
	return result, nil
}

func (t *podTimes) note(pod *corev1.Pod, now time.Time) {
	gated := false
	for _, gate := range pod.Spec.SchedulingGates {
		gated = gated || gate.Name == kube.PlacementGate
	}
	for step, reached := range [steps]bool{true, !gated, pod.Spec.NodeName != "", isReady(pod)} {
		if !reached || t.seen[step][pod.UID] {
			continue
		}
		t.seen[step][pod.UID] = true
		if t.last[step] = now; t.first[step].IsZero() {
			t.first[step] = now
		}
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// print prints the times since the beginning.
func (t *podTimes) print(began time.Time) {
	for step, name := range stepNames {
		fmt.Printf("  pods %-14s first %6.2f s, last %6.2f s\n", name, t.first[step].Sub(began).Seconds(), t.last[step].Sub(began).Seconds())
	}
}
