package queueobjects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/kube/apiserver"
)

// group is Kueue's.
const group = "kueue.x-k8s.io"

// resources are the watched resources: all that configure queues.
var resources = []string{
	"resourceflavors", "cohorts", "clusterqueues", "localqueues", "workloadpriorityclasses", "admissionchecks",
	"provisioningrequestconfigs", "topologies",
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Client is the access to one API server.
type Client struct {
	objects   dynamic.Interface
	discovery rest.Interface
	versions  map[string]string // in which each resource is stored
	informers map[string]cache.SharedIndexInformer
	patience  time.Duration // with caches that are being filled
}

// fillTimeout bounds the time until the caches are filled. A definition may go between the
// look for it and the first list of its objects, which then never succeeds.
const fillTimeout = 15 * time.Second

// Connect returns a client with the rights of the kubeconfig, or of the pod it
// runs in when the path is empty.
func Connect(kubeconfig string) (*Client, error) {
	config, err := apiserver.Config(kubeconfig, "muster-intake-queues")
	if err != nil {
		return nil, err
	}
	config.QPS = 0 // client-go's limit: nothing here is in a hurry
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for objects at %s: %w", config.Host, err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for what %s serves: %w", config.Host, err)
	}
	return &Client{objects: objects, discovery: served.RESTClient(), patience: fillTimeout}, nil
}

// ServesRequests reports whether the API server serves ProvisioningRequests in a version by which
// nodes are asked for.
func (c *Client) ServesRequests(ctx context.Context) (bool, error) {
	for _, version := range []string{"v1", "v1beta1"} {
		var list metav1.APIResourceList
		err := c.discovery.Get().AbsPath("/apis/autoscaling.x-k8s.io", version).Do(ctx).Into(&list)
		if apierrors.IsNotFound(err) {
			continue
		}
		if apierrors.IsForbidden(err) { // not known is no verdict
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("look for ProvisioningRequests of %s: %w", version, err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "provisioningrequests" }) {
			return true, nil
		}
	}
	return false, nil
}

// Kinds returns the versions in which the cluster stores Kueue's kinds, by resource, where
// Kueue itself is not there, which the definition of Workloads reveals. Definitions that
// intake may not read count as absent.
func (c *Client) Kinds(ctx context.Context) (map[string]string, error) {
	kueue, err := c.stored(ctx, "workloads")
	if err != nil || kueue != "" {
		return nil, err
	}
	versions := map[string]string{}
	for _, resource := range resources {
		version, err := c.stored(ctx, resource)
		if err != nil {
			return nil, err
		}
		if version != "" {
			versions[resource] = version
		}
	}
	return versions, nil
}

// stored returns the storage version of a resource, which reads objects without
// conversion. It is empty if there is no definition.
func (c *Client) stored(ctx context.Context, resource string) (string, error) {
	definition, err := c.objects.Resource(definitions).Get(ctx, resource+"."+group, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read definition of %s.%s: %w", resource, group, err)
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, isMap := v.(map[string]any); isMap && version["storage"] == true {
			name, _ := version["name"].(string)
			return name, nil
		}
	}
	return "", err
}

func (c *Client) resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: c.versions[name], Resource: name}
}

// resync is the period of the poll behind the watch.
const resync = 10 * time.Minute

// Watch caches all objects of kinds, in the versions that Kinds returned, until ctx ends, and
// returns once the caches are filled, or an error when that takes too long: the kinds may be
// others by then. It calls changed after each change other than a status update. It takes the
// place of an earlier watch, which has to be over.
func (c *Client) Watch(ctx context.Context, versions map[string]string, changed func()) error {
	c.versions, c.informers = versions, map[string]cache.SharedIndexInformer{}
	for name := range c.versions {
		informer := dynamicinformer.NewFilteredDynamicInformer(c.objects, c.resource(name), metav1.NamespaceAll, resync, cache.Indexers{}, nil).Informer()
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, DeleteFunc: func(any) { changed() },
			UpdateFunc: func(before, after any) {
				old, _ := before.(*unstructured.Unstructured)
				now, _ := after.(*unstructured.Unstructured)
				if old == nil || now == nil || old.GetGeneration() != now.GetGeneration() || now.GetGeneration() == 0 || isDeleted(old) != isDeleted(now) {
					changed()
				}
			},
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", name, err)
		}
		c.informers[name] = informer
		go informer.RunWithContext(ctx)
	}
	filling, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(c.informers)) {
		if !cache.WaitForCacheSync(filling.Done(), c.informers[name].HasSynced) {
			return fmt.Errorf("list %s.%s within %s: %w", name, group, c.patience, filling.Err())
		}
	}
	return nil
}

// Objects returns all objects, also those that are being deleted.
func (c *Client) Objects() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, informer := range c.informers {
		for _, item := range informer.GetStore().List() {
			if u, ok := item.(*unstructured.Unstructured); ok {
				all = append(all, u)
			}
		}
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetKind()+"/"+a.GetNamespace()+"/"+a.GetName(), b.GetKind()+"/"+b.GetNamespace()+"/"+b.GetName())
	})
	return all
}

// WriteStatus merges into the status of an object. A missing object is no error, nor
// is a namespace in which intake has no right to write.
func (c *Client) WriteStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error {
	encoded, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID()}, "status": status})
	if err != nil {
		return fmt.Errorf("encode status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	_, err = c.of(object).Patch(ctx, object.GetName(), types.MergePatchType, encoded, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("write status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// WriteFinalizers replaces the finalizers of an object, unless it has changed since it was
// read. Without the right to do so, as in a namespace that intake may not write in, or when the
// object is invalid by its definition, held is false: the object goes when it is deleted.
func (c *Client) WriteFinalizers(ctx context.Context, object *unstructured.Unstructured, finalizers []string) (held bool, err error) {
	encoded, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": finalizers,
	}})
	if err != nil {
		return false, fmt.Errorf("encode finalizers of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	_, err = c.of(object).Patch(ctx, object.GetName(), types.MergePatchType, encoded, metav1.PatchOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return false, nil
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // the watch brings what is new
		return true, nil
	}
	return false, fmt.Errorf("write finalizers of %s %s: %w", object.GetKind(), object.GetName(), err)
}

// Annotate writes an annotation of an object, and removes an empty one. As with a status, a
// missing object or right is no error.
func (c *Client) Annotate(ctx context.Context, object *unstructured.Unstructured, key, value string) error {
	annotations := map[string]any{key: value}
	if value == "" {
		annotations[key] = nil
	}
	encoded, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "annotations": annotations}})
	if err != nil {
		return fmt.Errorf("encode annotation of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	_, err = c.of(object).Patch(ctx, object.GetName(), types.MergePatchType, encoded, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("annotate %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (c *Client) of(object *unstructured.Unstructured) dynamic.ResourceInterface {
	return c.objects.Resource(c.resource(strings.ToLower(object.GetKind()) + "s")).Namespace(object.GetNamespace())
}
