package recorder

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

var provisioningRequests = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}

// StartRequests lists what is there and watches what comes, in a namespace and of the nodes
// with the labels.
func StartRequests(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface, namespace, nodeLabels string) (*Requests, error) {
	r := newRequests()
	of := objects.Resource(provisioningRequests).Namespace(namespace)
	for _, s := range []stream{
		{
			list: func(ctx context.Context) ([]any, string, error) {
				list, err := of.List(ctx, metav1.ListOptions{})
				if err != nil {
					return nil, "", err
				}
				return pointers(list.Items), list.GetResourceVersion(), nil
			},
			watch: func(ctx context.Context, from string) (watch.Interface, error) {
				return of.Watch(ctx, metav1.ListOptions{ResourceVersion: from})
			},
			all: r.allRequests, one: r.request,
		},
		{
			list: func(ctx context.Context) ([]any, string, error) {
				list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeLabels})
				if err != nil {
					return nil, "", err
				}
				return pointers(list.Items), list.ResourceVersion, nil
			},
			watch: func(ctx context.Context, from string) (watch.Interface, error) {
				return client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{LabelSelector: nodeLabels, ResourceVersion: from})
			},
			all: func(items []any) { each(items, r.node) }, one: r.node,
		},
		{
			list: func(ctx context.Context) ([]any, string, error) {
				list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
				if err != nil {
					return nil, "", err
				}
				return pointers(list.Items), list.ResourceVersion, nil
			},
			watch: func(ctx context.Context, from string) (watch.Interface, error) {
				return client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: from})
			},
			all: r.allPods, one: r.pod,
		},
	} {
		version, err := s.begin(ctx)
		if err != nil {
			return nil, fmt.Errorf("recorder of requests: list: %w", err)
		}
		go s.run(ctx, version)
	}
	return r, nil
}
