package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/test/bench/figures"
)

const (
	// podsOfNode is how many pods of a gang are on a node.
	podsOfNode = 8
	// indexLabel is the number of a pod in its gang, by which a policy finds its node.
	indexLabel = "bench.muster.dev/index"
	// pinTimeout bounds the start of all pods of a way.
	pinTimeout = 3 * time.Minute
)

// pinning is a way to have each pod of a gang on the node that is reserved for it.
type pinning struct {
	name string
	// prepare, unless nil, does what is done once for a gang.
	prepare func(ctx context.Context, s *site, gang []place) error
	// pod changes a pod before its creation.
	pod func(pod *corev1.Pod, at place, gang []place)
	// pin, unless nil, does what is done for each pod after its creation.
	pin func(ctx context.Context, s *site, pod *corev1.Pod, at place) error
}

// place is where pod number index of a gang goes.
type place struct {
	index int
	node  string
}

// pins measures what each way to pin pods costs: the writes that the API server answers, and the
// processor time of it, of etcd, of the scheduler and of this program. A cluster has nothing of
// Muster: this program does what the dispatcher does.
func pins(ctx context.Context, o options) error {
	s, err := openBare(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	nodes, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	if most := len(nodes.Items) * podsOfNode; o.large > most {
		return fmt.Errorf("-large %d: fleet %s has room for %d pods", o.large, o.fleet, most)
	}
	gang := make([]place, o.large)
	for i := range gang {
		gang[i] = place{i, nodes.Items[i/podsOfNode].Name}
	}
	ways := pinnings()
	if err := s.startPods(ctx, "first", ways[0], gang[:1]); err != nil { // it costs more than others
		return err
	}
	if err := s.removePods(ctx); err != nil {
		return err
	}
	fmt.Println(figures.Header(fmt.Sprintf("%d pods on %d nodes, what each way to pin them costs", len(gang), (len(gang)+podsOfNode-1)/podsOfNode)))
	fmt.Printf("  %-44s %s   %10s   %s\n", "", writesTitle, "all ready", timesTitle)
	for i, way := range ways {
		before, err := s.spent(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := s.startPods(ctx, fmt.Sprintf("way-%d", i), way, gang); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		took := time.Since(began)
		after, err := s.spent(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("  %-44s %s   %8.1f s   %s\n", way.name, after.writesSince(before), took.Seconds(), after.timesSince(before))
		if err := s.removePods(ctx); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

// startPods creates the pods of a gang, handsAtOnce at a time, pins each, and returns when all are
// ready on their nodes.
func (s *site) startPods(ctx context.Context, prefix string, way pinning, gang []place) error {
	ctx, cancel := context.WithTimeout(ctx, pinTimeout)
	defer cancel()
	if way.prepare != nil {
		if err := way.prepare(ctx, s, gang); err != nil {
			return err
		}
	}
	pods := s.kube.CoreV1().Pods(s.namespace)
	group, starting := errgroup.WithContext(ctx)
	group.SetLimit(handsAtOnce)
	for _, at := range gang {
		group.Go(func() error {
			pod := barePod(fmt.Sprintf("%s-%d", prefix, at.index), at.index)
			way.pod(pod, at, gang)
			made, err := pods.Create(starting, pod, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("create pod %q: %w", pod.Name, err)
			}
			if way.pin == nil {
				return nil
			}
			return way.pin(starting, s, made, at)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.awaitPods(ctx, prefix, gang)
}

// awaitPods returns when all pods of a gang are ready; it fails where a pod is outside of the
// gang's nodes.
func (s *site) awaitPods(ctx context.Context, prefix string, gang []place) error {
	for {
		list, err := s.kube.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		ready := 0
		for i := range list.Items {
			pod := &list.Items[i]
			if !strings.HasPrefix(pod.Name, prefix+"-") || !isReady(pod) {
				continue
			}
			if !slices.ContainsFunc(gang, func(p place) bool { return p.node == pod.Spec.NodeName }) {
				return fmt.Errorf("pod %q is on node %q, which is none of the gang's", pod.Name, pod.Spec.NodeName)
			}
			ready++
		}
		if ready == len(gang) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are ready: %w", ready, len(gang), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// removePods deletes all pods of the site, and waits until none is left.
func (s *site) removePods(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pinTimeout)
	defer cancel()
	pods, at := s.kube.CoreV1().Pods(s.namespace), int64(0)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &at}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	for {
		left, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil || len(left.Items) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("delete pods: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// barePod is a pod with a GPU.
func barePod(name string, index int) *corev1.Pod {
	needs := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{indexLabel: fmt.Sprint(index)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "ray", Image: "rayproject/ray:2.46.0", Resources: corev1.ResourceRequirements{Requests: needs, Limits: needs},
		}}},
	}
}
