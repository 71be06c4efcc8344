package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// rayClusters is the resource that the story is about.
func rayClusters() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
}

// observer looks into the cluster as the administrator does. All its reads go to
// the API server; nothing is cached.
type observer struct {
	pods    kubernetes.Interface
	objects dynamic.Interface
}

func newObserver(config *rest.Config) (*observer, error) {
	pods, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return &observer{pods: pods, objects: objects}, nil
}

// rayClustersOf names the RayClusters that are of the workload, or have its
// name, or stem from it by their labels.
func (o *observer) rayClustersOf(ctx context.Context, w workload.Workload) ([]string, error) {
	list, err := o.objects.Resource(rayClusters()).Namespace(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list RayClusters in %q: %w", w.Namespace, err)
	}
	var names []string
	for i := range list.Items {
		item := &list.Items[i]
		if item.GetName() == w.Name || item.GetLabels()[kube.WorkloadLabel] == string(w.ID) {
			names = append(names, item.GetName())
		}
	}
	return names, nil
}

// podsOf returns the pods that are of the workload, by Muster's label or by
// KubeRay's.
func (o *observer) podsOf(ctx context.Context, w workload.Workload) ([]corev1.Pod, error) {
	list, err := o.pods.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods in %q: %w", w.Namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Labels[kube.WorkloadLabel] != string(w.ID) && p.Labels["ray.io/cluster"] != w.Name
	}), nil
}

// misplaced returns what is wrong with the pods, compared with the plan; empty
// when each runs on its node.
func misplaced(pods []corev1.Pod, plan []workload.Placement) string {
	type place struct{ set, node string }
	missing := map[place]int{}
	for _, p := range plan {
		missing[place{p.PodSet, p.Node}] += p.Pods
	}
	var faults []string
	for i := range pods {
		pod := &pods[i]
		at := place{pod.Labels[kube.PodSetLabel], pod.Spec.NodeName}
		if pod.Status.Phase != corev1.PodRunning {
			faults = append(faults, fmt.Sprintf("pod %s is %s", pod.Name, pod.Status.Phase))
		}
		if missing[at] == 0 {
			faults = append(faults, fmt.Sprintf("pod %s of %q is on node %q, where the plan has no place for it", pod.Name, at.set, at.node))
		}
		missing[at]--
	}
	for at, pods := range missing {
		if pods > 0 {
			faults = append(faults, fmt.Sprintf("%d pods of %q are missing on node %q", pods, at.set, at.node))
		}
	}
	slices.Sort(faults)
	return strings.Join(faults, "; ")
}
