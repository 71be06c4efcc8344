package kubecontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	registration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/bundle"
)

// resources are the watched resources.
func resources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: appwrapper.Group, Version: appwrapper.V1beta2, Resource: "appwrappers"},
		{Group: appwrapper.LegacyGroup, Version: appwrapper.V1beta1, Resource: "legacyappwrappers"},
		{Group: "ray.io", Version: "v1", Resource: "rayjobs"},
		{Group: "ray.io", Version: "v1", Resource: "rayclusters"},
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
	webhooks  string                                                               // the configuration of webhooks that stamp objects; empty for none
	informers map[schema.GroupVersionResource]map[string]cache.SharedIndexInformer // by namespace
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
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return &Client{
		objects: objects, core: core, kinds: apiserver.NewResources(core.Discovery()),
		informers: map[schema.GroupVersionResource]map[string]cache.SharedIndexInformer{},
	}, nil
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
		c.informers[resource] = map[string]cache.SharedIndexInformer{}
		for _, namespace := range namespaces {
			informer := dynamicinformer.NewFilteredDynamicInformer(c.objects, resource, namespace, 0, cache.Indexers{}, nil).Informer()
			if err := listen(informer, resource, changed); err != nil {
				return fmt.Errorf("watch %s: %w", resource.Resource, err)
			}
			c.informers[resource][namespace] = informer
			synced = append(synced, informer.HasSynced)
		}
	}
	for _, of := range c.informers {
		for _, informer := range of {
			go informer.RunWithContext(ctx)
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

// trim drops unused fields from the cache; of Ray objects without a queue it keeps the
// metadata alone.
func trim(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	u.SetManagedFields(nil)
	if strings.HasPrefix(u.GetAPIVersion(), "ray.io/") {
		delete(u.Object, "status")
		if queueOf(u) == "" {
			delete(u.Object, "spec")
		}
	}
	return u, nil
}

// Object returns an object from the cache, or nil.
func (c *Client) Object(key Key) *unstructured.Unstructured {
	for _, namespace := range []string{key.Namespace, metav1.NamespaceAll} {
		informer := c.informers[key.Resource][namespace]
		if informer == nil {
			continue
		}
		if found, ok, err := informer.GetStore().GetByKey(key.Namespace + "/" + key.Name); err == nil && ok {
			return found.(*unstructured.Unstructured).DeepCopy()
		}
	}
	return nil
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

var policyBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"}

// Suffixes of the policies that stamp an object's creator on it (deploy/policy); each
// installation has its own prefix.
const (
	stampsWrappers = "-appwrapper-user"
	stampsLabelled = "-ray-user"
)

// StampedBy names the MutatingWebhookConfiguration in which intake's own webhooks may stamp
// objects in place of policies.
func (c *Client) StampedBy(configuration string) { c.webhooks = configuration }

// Core returns the access to Kubernetes' own kinds.
func (c *Client) Core() kubernetes.Interface { return c.core }

// Stamps reports whether a policy with that suffix is in force, or the webhooks that stand
// for it. Without it the creator of an object could forge the policy's annotations.
func (c *Client) Stamps(ctx context.Context, policy string) (bool, error) {
	stamps, err := c.policyStamps(ctx, policy)
	if stamps || err != nil || c.webhooks == "" {
		return stamps, err
	}
	configuration, err := c.core.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, c.webhooks, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the webhooks %s: %w", c.webhooks, err)
	}
	return slices.ContainsFunc(configuration.Webhooks, func(w registration.MutatingWebhook) bool {
		return strings.HasPrefix(w.Name, strings.TrimPrefix(policy, "-")+".") && len(w.ClientConfig.CABundle) > 0 &&
			w.FailurePolicy != nil && *w.FailurePolicy == registration.Fail
	}), nil
}

func (c *Client) policyStamps(ctx context.Context, policy string) (bool, error) {
	// From the API server's cache, as it evaluates policies: a consistent list waits up to 100
	// ms until that cache is known to be current.
	bindings, err := c.objects.Resource(policyBindings).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return false, nil // this Kubernetes version does not serve them
	}
	if err != nil {
		return false, fmt.Errorf("look for the policy %s: %w", policy, err)
	}
	return slices.ContainsFunc(bindings.Items, func(b unstructured.Unstructured) bool { return strings.HasSuffix(b.GetName(), policy) }), nil
}

// Allowed asks the API server whether the user may create the object; why is empty if
// so. For a kind that is not served the error matches meta.IsNoMatchError.
func (c *Client) Allowed(ctx context.Context, user bundle.Submitter, id bundle.Identity) (why string, err error) {
	gv, err := schema.ParseGroupVersion(id.APIVersion)
	if err != nil {
		return err.Error(), nil
	}
	found, err := c.kinds.Of(gv.WithKind(id.Kind))
	if err != nil {
		return "", err
	}
	if found.Scope.Name() != meta.RESTScopeNameNamespace {
		return id.Kind + " " + id.Name + " belongs to no namespace; wrap objects of namespaces only", nil
	}
	return apiserver.MayCreate(ctx, c.core.AuthorizationV1(), user, found.Resource, id.Namespace, id.Name)
}
