package kubecontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
)

// resources are the watched resources.
func resources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: appwrapper.Group, Version: appwrapper.V1beta2, Resource: "appwrappers"},
		{Group: appwrapper.LegacyGroup, Version: appwrapper.V1beta1, Resource: "legacyappwrappers"},
		ray.Resource("rayjobs"),
		ray.Resource("rayclusters"),
	}
}

// Key names an object.
type Key struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// String returns the object's name for messages.
func (k Key) String() string { return k.Resource.Resource + " " + k.Namespace + "/" + k.Name }

func (k Key) ray() bool { return k.Resource.Group == "ray.io" }

// Client is the controller's access to one API server. It may be used concurrently.
type Client struct {
	objects   dynamic.Interface
	core      kubernetes.Interface
	kinds     *apiserver.Resources
	webhooks  string                                                                 // the configuration of webhooks that stamp objects; empty for none
	informers map[schema.GroupVersionResource]map[string][]cache.SharedIndexInformer // by namespace
	stamping  keptAnswers[string]                                                    // suffixes of policies
	creating  keptAnswers[creation]
	now       func() time.Time
}

// Connect returns a client with the rights of the kubeconfig, or of the pod it
// runs in when the path is empty.
func Connect(kubeconfig string) (*Client, error) {
	config, err := apiserver.Config(kubeconfig, "muster-intake")
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for objects at %s: %w", config.Host, err)
	}
	own := rest.CopyConfig(config) // Kubernetes' own kinds; definitions are served as JSON only
	own.ContentType = runtime.ContentTypeProtobuf
	own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return &Client{
		objects: objects, core: core, kinds: apiserver.NewResources(core.Discovery()), now: time.Now,
		informers: map[schema.GroupVersionResource]map[string][]cache.SharedIndexInformer{},
	}, nil
}

// selectors select the objects of a resource that the controller reconciles, each by one of
// them: of Ray objects those with a queue. The API server then sends nothing of the others,
// which are those that dispatchers have created, and all that Muster has nothing to do with.
func selectors(resource schema.GroupVersionResource) []string {
	if resource.Group != "ray.io" {
		return []string{""}
	}
	return []string{appwrapper.QueueLabel, kube.KueueQueueLabel + ",!" + appwrapper.QueueLabel}
}

// Watch caches the objects of the namespaces, or of all if there are none, until ctx
// ends. It calls changed for each object that is added, changed or removed. It skips
// kinds that the cluster does not serve.
func (c *Client) Watch(ctx context.Context, namespaces []string, changed func(Key)) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var synced []cache.InformerSynced
	for _, resource := range resources() {
		served, err := c.serves(resource)
		if err != nil {
			return err
		}
		if !served {
			continue
		}
		c.informers[resource] = map[string][]cache.SharedIndexInformer{}
		for _, namespace := range namespaces {
			for _, selector := range selectors(resource) {
				informer := dynamicinformer.NewFilteredDynamicInformer(c.objects, resource, namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
					o.LabelSelector = selector
				}).Informer()
				if err := listen(informer, resource, changed); err != nil {
					return fmt.Errorf("watch %s: %w", resource.Resource, err)
				}
				c.informers[resource][namespace] = append(c.informers[resource][namespace], informer)
				synced = append(synced, informer.HasSynced)
			}
		}
	}
	for _, of := range c.informers {
		for _, informers := range of {
			for _, informer := range informers {
				go informer.RunWithContext(ctx)
			}
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("fill caches: %w", ctx.Err())
	}
	return nil
}

func (c *Client) serves(resource schema.GroupVersionResource) (bool, error) {
	list, err := c.core.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("check whether the cluster serves %s: %w", resource.GroupVersion(), err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }), nil
}

func listen(informer cache.SharedIndexInformer, resource schema.GroupVersionResource, changed func(Key)) error {
	if err := informer.SetTransform(trim); err != nil {
		return err
	}
	notify := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		u, ok := object.(*unstructured.Unstructured)
		if !ok || resource.Group == "ray.io" && queueOf(u) == "" {
			return
		}
		changed(Key{resource, u.GetNamespace(), u.GetName()})
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, object any) { notify(object) }, DeleteFunc: notify,
	})
	return err
}

// trim drops unused fields from the cache.
func trim(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	u.SetManagedFields(nil)
	if strings.HasPrefix(u.GetAPIVersion(), "ray.io/") {
		delete(u.Object, "status")
	}
	return u, nil
}

// Object returns an object from the cache, or nil.
func (c *Client) Object(key Key) *unstructured.Unstructured {
	for _, namespace := range []string{key.Namespace, metav1.NamespaceAll} {
		for _, informer := range c.informers[key.Resource][namespace] {
			if found, ok, err := informer.GetStore().GetByKey(key.Namespace + "/" + key.Name); err == nil && ok {
				return found.(*unstructured.Unstructured).DeepCopy()
			}
		}
	}
	return nil
}

// Unwatched reads an object that has left the caches from the API server; nil if it is gone. It is a
// list of one name, because intake may list and not get.
func (c *Client) Unwatched(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	list, err := c.objects.Resource(key.Resource).Namespace(key.Namespace).
		List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()})
	if err != nil {
		return nil, fmt.Errorf("look whether %s is there without a queue label: %w", key, err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == key.Name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// resourceOf returns the resource of a cached object.
func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	for _, resource := range resources() {
		same := resource.GroupVersion().String() == object.GetAPIVersion()
		if same && (resource.Group != "ray.io" || resource.Resource == strings.ToLower(object.GetKind())+"s") {
			return resource
		}
	}
	return schema.GroupVersionResource{}
}
