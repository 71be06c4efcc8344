package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/kube/lease"
)

// Client talks to the API server. It may be used concurrently.
type Client struct {
	cluster string // what queue-manager calls it; others' objects are foreign
	objects dynamic.Interface
	core    kubernetes.Interface
	raw     rest.Interface // posts JSON as it is
	kinds   *apiserver.Resources
	leases  coordinationv1.LeasesGetter
	rights  rights
	made    connections
}

// Connect returns a client of the named cluster with the rights of the kubeconfig, or of the pod it
// runs in when the path is empty. It limits itself by no rate, but by how many
// requests are on their way, which follows the API server's answers.
//
// What changes something passes only while the guard reports that the lease is held;
// Leases alone are not under it.
func Connect(kubeconfig, cluster string, guard *lease.Guard, registry *prometheus.Registry) (*Client, error) {
	return connect(kubeconfig, cluster, guard.Wrap, newLimiter(registry))
}

// connect is Connect with what each request passes last, and a limiter.
func connect(kubeconfig, cluster string, last func(http.RoundTripper) http.RoundTripper, limiter *limiter) (*Client, error) {
	config, err := apiserver.Config(kubeconfig, "muster-dispatcher")
	if err != nil {
		return nil, err
	}
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for leases at %s: %w", config.Host, err)
	}
	made := newConnections()
	config.Wrap(made.Wrap)
	config.Wrap(last) // inside of the limiter: asked after the wait
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limited{limiter, next} })
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for Ray objects at %s: %w", config.Host, err)
	}
	core := rest.CopyConfig(config)
	core.ContentType = "application/vnd.kubernetes.protobuf"
	core.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	pods, err := kubernetes.NewForConfig(core)
	if err != nil {
		return nil, fmt.Errorf("client for pods at %s: %w", config.Host, err)
	}
	posting := rest.CopyConfig(config)
	posting.ContentType = "application/json"
	posting.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(posting)
	if err != nil {
		return nil, fmt.Errorf("client for creations at %s: %w", config.Host, err)
	}
	return &Client{cluster: cluster, objects: objects, core: pods, raw: raw, kinds: apiserver.NewResources(pods.Discovery()), leases: leases, made: made}, nil
}

// Leases is for the lease under which everything else is done.
func (c *Client) Leases() coordinationv1.LeasesGetter { return c.leases }

// Create posts a manifest as it is and returns the UID of the new object.
func (c *Client) Create(ctx context.Context, kind, namespace string, manifest json.RawMessage) (uid string, err error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(manifest, &meta); err != nil {
		return "", fmt.Errorf("read apiVersion of the manifest: %w", err)
	}
	version, err := schema.ParseGroupVersion(meta.APIVersion)
	if err != nil {
		return "", fmt.Errorf("read apiVersion of the manifest: %w", err)
	}
	return uidOf(c.raw.Post().AbsPath("apis", version.Group, version.Version, "namespaces", namespace, resources[kind].Resource).
		Body([]byte(manifest)).Do(ctx))
}

// uidOf reads the answer to a creation.
func uidOf(result rest.Result) (string, error) {
	if err := result.Error(); err != nil { // which has what the API server reports, unlike that of Raw
		return "", err
	}
	answer, err := result.Raw()
	if err != nil {
		return "", err
	}
	var created metav1.PartialObjectMetadata
	if err := json.Unmarshal(answer, &created); err != nil {
		return "", fmt.Errorf("read what was created: %w", err)
	}
	return string(created.UID), nil
}

// Get reads an object from the API server, uncached; nil when there is none.
func (c *Client) Get(ctx context.Context, kind, namespace, name string) (*Object, error) {
	found, err := c.objects.Resource(resources[kind]).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", kind, namespace, name, err)
	}
	object := objectOf(kind, found)
	if found.GetLabels()[kube.ClusterLabel] != c.cluster {
		object.Workload = "" // foreign, or of another Muster
	}
	return &object, nil
}

// ours selects what this cluster's dispatchers have made.
func (c *Client) ours() string { return kube.ClusterLabel + "=" + c.cluster }

// Delete removes exactly this object, what it owns in the background. An object
// that was released is its owner's: it is suspended again and not the
// workload's any more.
func (c *Client) Delete(ctx context.Context, o Object) error {
	if o.Resumed {
		return c.suspend(ctx, o)
	}
	uid, background := types.UID(o.UID), metav1.DeletePropagationBackground
	err := c.objects.Resource(resources[o.Kind]).Namespace(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return nil
}

// Announce writes on exactly this object when it will be evicted; the zero time
// takes that back.
func (c *Client) Announce(ctx context.Context, o Object, at time.Time) error {
	value := any(nil) // null removes the annotation
	if !at.IsZero() {
		value = at.UTC().Format(time.RFC3339)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.UID, "annotations": map[string]any{kube.EvictingAtKey: value},
	}})
	if err != nil {
		return fmt.Errorf("encode patch of %s %s: %w", o.Kind, o.Name, err)
	}
	_, err = c.objects.Resource(resources[o.Kind]).Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotate %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return nil
}
