package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/test/stack"
)

// bareGate is the scheduling gate of pods on a bare cluster. The baseline lifts it with one
// patch for each pod, as Muster does with its own.
const bareGate = "bench.muster.dev/by-hand"

// openBare starts a cluster without Muster.
func openBare(ctx context.Context, o options) (_ *site, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &site{namespace: "bare"}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.cluster, err = devcluster.Start(ctx, devcluster.Options{Name: fmt.Sprintf("bench-bare-%d", os.Getpid()), Fleet: o.fleet})
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, s.cluster.Stop)
	admin, err := clientcmd.BuildConfigFromFlags("", s.cluster.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", s.cluster.Kubeconfig, err)
	}
	admin.QPS = -1
	if s.kube, err = kubernetes.NewForConfig(admin); err != nil {
		return nil, err
	}
	if s.metadata, err = metadata.NewForConfig(admin); err != nil {
		return nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(admin); err != nil {
		return nil, err
	}
	_, err = s.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	return s, err
}

// gated is the manifest that is submitted to Muster, with the gate that Muster would add.
func gated(name string, workers int) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(stack.RayCluster(name, workers, 1)), &object.Object); err != nil {
		return nil, err
	}
	gate := []any{map[string]any{"name": bareGate}}
	head := []string{"spec", "headGroupSpec", "template", "spec", "schedulingGates"}
	if err := unstructured.SetNestedSlice(object.Object, gate, head...); err != nil {
		return nil, err
	}
	groups, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		if err := unstructured.SetNestedSlice(group.(map[string]any), gate, "template", "spec", "schedulingGates"); err != nil {
			return nil, err
		}
	}
	return object, unstructured.SetNestedSlice(object.Object, groups, "spec", "workerGroupSpecs")
}

// lifter lifts the gates of pods, handsAtOnce at a time.
type lifter struct {
	site *site
	pods chan string
}

// lift begins to lift gates until ctx ends. The returned lifter takes the pods; no more than
// most come.
func (s *site) lift(ctx context.Context, most int) *lifter {
	l := &lifter{site: s, pods: make(chan string, most)}
	for range handsAtOnce {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case name := <-l.pods:
					l.one(ctx, name)
				}
			}
		}()
	}
	return l
}

// one lifts the gates of a pod. A failure shows as a gang that never runs.
func (l *lifter) one(ctx context.Context, name string) {
	patch := []byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`)
	_, err := l.site.kube.CoreV1().Pods(l.site.namespace).Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "bench: lift the gate of pod %q: %v\n", name, err)
	}
}
