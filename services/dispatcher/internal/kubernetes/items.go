package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
)

// ErrClusterScoped is wrapped for an object that belongs to no namespace.
var ErrClusterScoped = errors.New("objects outside of namespaces are not created")

// Wrapped is a wrapped object as the API server has it.
type Wrapped struct {
	Object
	Content map[string]any
}

// mapping finds the resource of a kind. An unknown kind is looked up again, for
// its definition may be a moment old.
func (c *Client) mapping(id bundle.Identity) (schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(id.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("apiVersion %q of %s: %w", id.APIVersion, id, err)
	}
	found, err := c.kinds.Of(gv.WithKind(id.Kind))
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	if found.Scope.Name() != meta.RESTScopeNameNamespace {
		return schema.GroupVersionResource{}, fmt.Errorf("%s %s: %w", id.APIVersion, id.Kind, ErrClusterScoped)
	}
	return found.Resource, nil
}

// IsUnknownKind reports whether the API server does not know the kind.
func IsUnknownKind(err error) bool { return meta.IsNoMatchError(err) }

// CreateItem posts a wrapped object as it is and returns the UID of the new object.
func (c *Client) CreateItem(ctx context.Context, id bundle.Identity, manifest json.RawMessage) (uid string, err error) {
	resource, err := c.mapping(id)
	if err != nil {
		return "", err
	}
	root := []string{"api", resource.Version}
	if resource.Group != "" {
		root = []string{"apis", resource.Group, resource.Version}
	}
	return uidOf(c.raw.Post().AbsPath(append(root, "namespaces", id.Namespace, resource.Resource)...).
		Body([]byte(manifest)).Do(ctx))
}

// GetItem reads a wrapped object, uncached; nil when there is none.
func (c *Client) GetItem(ctx context.Context, id bundle.Identity) (*Wrapped, error) {
	if len(content.IsPathSegmentName(id.Name)) > 0 {
		return nil, nil // the API server has no object of such a name
	}
	resource, err := c.mapping(id)
	if err != nil {
		if IsUnknownKind(err) || errors.Is(err, ErrClusterScoped) {
			return nil, nil // then there is no such object, either
		}
		return nil, err
	}
	found, err := c.objects.Resource(resource).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", id, err)
	}
	return &Wrapped{Object: c.wrappedOf(id, found), Content: found.Object}, nil
}

func (c *Client) wrappedOf(id bundle.Identity, u *unstructured.Unstructured) Object {
	labels := u.GetLabels()
	attempt, _ := strconv.Atoi(labels[kube.AttemptLabel]) // 0 when it is not ours
	epoch, _ := strconv.ParseInt(u.GetAnnotations()[kube.EpochKey], 10, 64)
	o := Object{
		Epoch: epoch,
		Kind:  id.Kind, Namespace: u.GetNamespace(), Name: u.GetName(), UID: string(u.GetUID()), Attempt: attempt,
		Workload: workload.ID(labels[kube.WorkloadLabel]), Deleting: u.GetDeletionTimestamp() != nil,
		Stamped: attempt > 0 && u.GetAnnotations()[kube.EpochKey] != "", Owned: len(u.GetOwnerReferences()) > 0, Resumed: isResumed(u),
		LastCheckpoint: reportedTime(u, kube.LastCheckpointKey),
	}
	if labels[kube.ClusterLabel] != c.cluster {
		o.Workload = "" // foreign, or of another Muster
	}
	o.DeletedAt, o.Finalizers = deletionOf(u)
	if bundle.IsRay(id) {
		o.Message = podCreationFailure(u)
	}
	return o
}

// DeleteItem removes the object with exactly this UID and reports whether it is
// gone. It stays, being deleted, until what it owns is gone; except for Ray objects,
// which KubeRay cleans up after.
func (c *Client) DeleteItem(ctx context.Context, id bundle.Identity, exactly string) (gone bool, err error) {
	resource, err := c.mapping(id)
	if err != nil {
		return false, err
	}
	uid, policy := types.UID(exactly), metav1.DeletePropagationForeground
	if bundle.IsRay(id) {
		policy = metav1.DeletePropagationBackground
	}
	err = c.objects.Resource(resource).Namespace(id.Namespace).Delete(ctx, id.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &policy,
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // of that name there is none, or another one
		return true, nil
	case err != nil:
		return false, fmt.Errorf("delete %s: %w", id, err)
	}
	return false, nil
}

// Allowed asks the API server whether the user may create the object; when not,
// why.
func (c *Client) Allowed(ctx context.Context, user workload.Identity, id bundle.Identity) (why string, err error) {
	resource, err := c.mapping(id)
	if err != nil {
		return "", err
	}
	return apiserver.MayCreate(ctx, c.core.AuthorizationV1(), user, resource, id.Namespace, id.Name)
}
