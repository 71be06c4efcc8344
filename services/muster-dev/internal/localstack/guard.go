package localstack

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"muster.dev/muster/pkg/kube"
)

// ErrNoKubeRay is what a cluster of the user's lacks.
var ErrNoKubeRay = errors.New("the cluster does not serve RayClusters, RayJobs and RayServices: install the KubeRay operator first")

// ErrOtherMuster means that a cluster is managed already.
var ErrOtherMuster = errors.New("the cluster has workloads of another Muster")

// guard checks that a cluster of the user's can be used. A dispatcher takes
// objects with Muster's labels that its own database does not know for
// orphans and removes them, so with an empty database there must be none.
func guard(ctx context.Context, admin *rest.Config, emptyDatabase bool) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("client for %s: %w", admin.Host, err)
	}
	for _, kind := range []string{"rayclusters", "rayjobs", "rayservices"} {
		resource := schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: kind}
		found, err := client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: kube.WorkloadLabel, Limit: 1})
		if apierrors.IsNotFound(err) {
			return ErrNoKubeRay
		}
		if err != nil {
			return fmt.Errorf("list %s in all namespaces: %w", kind, err)
		}
		if len(found.Items) > 0 && emptyDatabase {
			first := found.Items[0]
			return fmt.Errorf("%w, such as %s %s/%s: this stack would treat them as orphans", ErrOtherMuster,
				first.GetKind(), first.GetNamespace(), first.GetName())
		}
	}
	return nil
}
