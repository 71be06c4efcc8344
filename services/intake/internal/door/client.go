package door

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/appwrapper"
	"muster.dev/muster/pkg/bundle"
)

// finalizer keeps an object until its workload has been torn down.
const finalizer = "muster.dev/workload"

// resources are what comes through the door.
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

// String is how messages call the object.
func (k Key) String() string { return k.Resource.Resource + " " + k.Namespace + "/" + k.Name }

func (k Key) ray() bool { return k.Resource.Group == "ray.io" }

// Client is the door's access to one API server. It may be used concurrently.
type Client struct {
	objects   dynamic.Interface
	core      kubernetes.Interface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	informers map[schema.GroupVersionResource]map[string]cache.SharedIndexInformer // by namespace
}

// Connect returns a client with the rights of the kubeconfig, or of the pod it
// runs in when the path is empty.
func Connect(kubeconfig string) (*Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = -1 // the API server's own fairness limits
	config.UserAgent = "muster-intake"
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for objects at %s: %w", config.Host, err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", config.Host, err)
	}
	return &Client{
		objects: objects, core: core, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(core.Discovery())),
		informers: map[schema.GroupVersionResource]map[string]cache.SharedIndexInformer{},
	}, nil
}

// Watch fills the caches of the namespaces, or of all when there are none, and
// keeps them until ctx ends. changed is called for each object that is new, has
// changed or is gone. Kinds that the cluster does not serve are left out.
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
		return false, fmt.Errorf("ask whether the cluster serves %s: %w", resource.GroupVersion(), err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }), nil
}

func listen(informer cache.SharedIndexInformer, resource schema.GroupVersionResource, changed func(Key)) error {
	if err := informer.SetTransform(trim); err != nil {
		return err
	}
	tell := func(object any) {
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
		AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) }, DeleteFunc: tell,
	})
	return err
}

// trim drops what nobody reads here; of Ray objects without a queue that is all
// but their names.
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

// Object returns an object from the cache, nil when it is not there.
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

func hasFinalizer(object *unstructured.Unstructured) bool {
	return slices.Contains(object.GetFinalizers(), finalizer)
}

// resourceOf finds where an object of the cache came from.
func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	for _, resource := range resources() {
		same := resource.GroupVersion().String() == object.GetAPIVersion()
		if same && (resource.Group != "ray.io" || resource.Resource == strings.ToLower(object.GetKind())+"s") {
			return resource
		}
	}
	return schema.GroupVersionResource{}
}

// patch changes exactly the object that was looked at. That it is gone meanwhile
// is no error, its disappearance is seen.
func (c *Client) patch(ctx context.Context, object *unstructured.Unstructured, content map[string]any, subresources ...string) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode patch of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	_, err = c.objects.Resource(resourceOf(object)).Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), types.MergePatchType, encoded, metav1.PatchOptions{}, subresources...)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// SetFinalizer adds the door's finalizer, or removes it. It fails when the object
// has changed since it was read: others have finalizers, too.
func (c *Client) SetFinalizer(ctx context.Context, object *unstructured.Unstructured, there bool) error {
	finalizers := slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == finalizer })
	if there {
		finalizers = append(finalizers, finalizer)
	}
	return c.patch(ctx, object, map[string]any{"metadata": map[string]any{
		"resourceVersion": object.GetResourceVersion(), "finalizers": finalizers,
	}})
}

// WriteStatus replaces what the door has to say; fields of others stay.
func (c *Client) WriteStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error {
	return c.patch(ctx, object, map[string]any{"metadata": map[string]any{"uid": object.GetUID()}, "status": status}, "status")
}

// Annotate sets annotations of the object.
func (c *Client) Annotate(ctx context.Context, object *unstructured.Unstructured, annotations map[string]string) error {
	return c.patch(ctx, object, map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "annotations": annotations}})
}

// Delete deletes exactly the object that was looked at; that it is gone is no
// error.
func (c *Client) Delete(ctx context.Context, object *unstructured.Unstructured) error {
	uid := object.GetUID()
	background := metav1.DeletePropagationBackground
	err := c.objects.Resource(resourceOf(object)).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// Tell records an event of the object.
func (c *Client) Tell(ctx context.Context, object *unstructured.Unstructured, warning bool, reason, message string) error {
	const longest = 1000 // the API server takes 1024 bytes
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "..."
	}
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	now := metav1.NewTime(time.Now())
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), GenerateName: object.GetName() + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		},
		Reason: reason, Message: message, Type: kind, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "muster"},
	}
	_, err := c.core.CoreV1().Events(object.GetNamespace()).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // its namespace is going
		return fmt.Errorf("record event %s of %s %s: %w", reason, object.GetKind(), object.GetName(), err)
	}
	return nil
}

var policyBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"}

// Policies that write on objects who has created them (deploy/policy). An
// installation puts a prefix of its own before the names.
const (
	stampsWrappers = "-appwrapper-user"
	stampsHeld     = "-ray-user"
)

// Stamps reports whether a policy whose name ends so is in force. Without it,
// whoever creates an object may write on it what the policy would.
func (c *Client) Stamps(ctx context.Context, policy string) (bool, error) {
	bindings, err := c.objects.Resource(policyBindings).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil // a Kubernetes that serves none
	}
	if err != nil {
		return false, fmt.Errorf("look for the policy %s: %w", policy, err)
	}
	return slices.ContainsFunc(bindings.Items, func(b unstructured.Unstructured) bool { return strings.HasSuffix(b.GetName(), policy) }), nil
}

// Allowed asks the API server whether the user may create the object; when not,
// why. For a kind that is not served the error is meta.IsNoMatchError's.
func (c *Client) Allowed(ctx context.Context, user bundle.Submitter, id bundle.Identity) (why string, err error) {
	gv, err := schema.ParseGroupVersion(id.APIVersion)
	if err != nil {
		return err.Error(), nil
	}
	found, err := c.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: id.Kind}, gv.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset() // its definition may be a moment old
		found, err = c.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: id.Kind}, gv.Version)
	}
	if err != nil {
		return "", fmt.Errorf("resource of %s %s: %w", id.APIVersion, id.Kind, err)
	}
	if found.Scope.Name() != meta.RESTScopeNameNamespace {
		return id.Kind + " " + id.Name + " belongs to no namespace; wrap objects of namespaces only", nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.User, UID: user.UID, Groups: user.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: id.Namespace, Verb: "create", Group: gv.Group, Version: gv.Version, Resource: found.Resource.Resource, Name: id.Name,
		},
	}}
	answer, err := c.core.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask whether %q may create %s: %w", user.User, id, err)
	}
	if answer.Status.Allowed {
		return "", nil
	}
	return fmt.Sprintf("user %q may not create %s in namespace %s", user.User, found.Resource.GroupResource(), id.Namespace), nil
}
