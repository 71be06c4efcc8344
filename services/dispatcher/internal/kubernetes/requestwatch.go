package kubernetes

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/spec/workload"
)

// watchRequests has changed called for each workload of which a request for nodes has
// changed. It is no part of what has to be read before the start: an API server that serves
// no requests, or refuses them for want of a right, keeps nothing else from being done.
func (c *Client) watchRequests(ctx context.Context, w *Watch, labelled func(*metav1.ListOptions), changed func(workload.ID)) error {
	resource, served := c.requestResource()
	if !served {
		return nil
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(c.objects, resource, metav1.NamespaceAll, 0, cache.Indexers{}, labelled).Informer()
	if err := w.prepare(informer, changed, trimRequest); err != nil {
		return fmt.Errorf("watch %s: %w", resource.Resource, err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		w.requestsFailed.Store(time.Now().UnixNano())
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}); err != nil {
		return fmt.Errorf("watch %s: %w", resource.Resource, err)
	}
	w.requests = informer
	go informer.RunWithContext(ctx)
	return nil
}

// requestResource finds the version of ProvisioningRequests that the API server serves.
func (c *Client) requestResource() (schema.GroupVersionResource, bool) {
	for _, version := range []string{"v1", "v1beta1"} {
		kind := schema.GroupVersionKind{Group: "autoscaling.x-k8s.io", Version: version, Kind: "ProvisioningRequest"}
		if found, err := c.kinds.Of(kind); err == nil {
			return found.Resource, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// WatchesRequests reports whether changes of requests for nodes are watched: not before the
// first list has been read, not while the watch fails, as without the right to it, and never
// where no requests were served at the start.
func (w *Watch) WatchesRequests() bool {
	return w.requests != nil && w.requests.HasSynced() && time.Since(time.Unix(0, w.requestsFailed.Load())) > requestsUnsure
}

// requestsUnsure is longer than the longest pause between two tries of a watch.
const requestsUnsure = 2 * time.Minute

// trimRequest keeps of a request whose it is: its conditions are read uncached.
func trimRequest(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	trimmed := &unstructured.Unstructured{}
	trimmed.SetNamespace(u.GetNamespace())
	trimmed.SetName(u.GetName())
	trimmed.SetUID(u.GetUID())
	trimmed.SetResourceVersion(u.GetResourceVersion())
	trimmed.SetLabels(u.GetLabels())
	return trimmed, nil
}
