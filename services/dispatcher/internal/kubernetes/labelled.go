package kubernetes

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
)

// Labelled lists the objects of a kind that this cluster's dispatchers have made, uncached:
// of a workload and a namespace, or of all when these are empty. The error for a kind that the
// API server does not know is one of IsUnknownKind.
func (c *Client) Labelled(ctx context.Context, apiVersion, kind, namespace string, of workload.ID) ([]Wrapped, error) {
	resource, err := c.mapping(bundle.Identity{APIVersion: apiVersion, Kind: kind, Namespace: namespace})
	if err != nil {
		return nil, err
	}
	selector := c.ours()
	if of != "" {
		selector += "," + kube.WorkloadLabel + "=" + string(of)
	}
	list, err := c.objects.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list %s of workload %q: %w", kind, of, err)
	}
	found := make([]Wrapped, len(list.Items))
	for i := range list.Items {
		u := &list.Items[i]
		id := bundle.Identity{APIVersion: apiVersion, Kind: kind, Namespace: u.GetNamespace(), Name: u.GetName()}
		found[i] = Wrapped{Object: c.wrappedOf(id, u), Content: u.Object}
	}
	return found, nil
}
