package watch

import (
	"context"
	"time"

	"github.com/go-logr/zapr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

// owners are the kinds of controllers between pods and the objects that Muster creates.
// Only their metadata is watched.
var owners = map[string]schema.GroupVersionResource{
	"ray.io/RayCluster": {Group: "ray.io", Version: "v1", Resource: "rayclusters"},
	"batch/Job":         {Group: "batch", Version: "v1", Resource: "jobs"},
	"apps/ReplicaSet":   {Group: "apps", Version: "v1", Resource: "replicasets"},
	"apps/StatefulSet":  {Group: "apps", Version: "v1", Resource: "statefulsets"},
}

// ownerOf returns an object's controller.
func ownerOf(object metav1.Object) observed.Owner {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil {
		return observed.Owner{}
	}
	group, err := schema.ParseGroupVersion(controller.APIVersion)
	_, seen := owners[group.Group+"/"+controller.Kind]
	return observed.Owner{Controller: string(controller.UID), Seen: seen && err == nil}
}

// metadataRetryMost bounds the pause between retries, because a kind, or the right to list
// it, may be missing in the cluster for good.
const metadataRetryMost = time.Minute

// reflectMetadata watches the metadata of the objects of a kind until ctx ends.
func (v *view) reflectMetadata(ctx context.Context, resource schema.GroupVersionResource, into cache.ReflectorStore) {
	logger := zapr.NewLogger(v.Logger)
	client := v.Metadata.Resource(resource)
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return client.Watch(ctx, o) },
	}, v.Metadata)
	cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, into, cache.ReflectorOptions{
		Name: resource.Resource, Logger: &logger,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: metadataRetryMost, Steps: 25, Factor: 2, Jitter: 0.5},
	}).RunWithContext(ctx)
}

// ownersOf records the objects of one kind.
func (v *view) ownersOf() cache.ReflectorStore {
	seen := map[string]bool{} // UIDs; the reflector calls from one goroutine
	return &store[*metav1.PartialObjectMetadata]{
		set: func(o *metav1.PartialObjectMetadata) {
			uid, owner := string(o.UID), ownerOf(o)
			seen[uid] = true
			v.target.Apply(func(p *observed.Cache) { p.SetOwner(uid, owner) })
		},
		remove: func(o *metav1.PartialObjectMetadata) {
			delete(seen, string(o.UID))
			v.target.Apply(func(p *observed.Cache) { p.RemoveOwner(string(o.UID)) })
		},
		replace: func(list []*metav1.PartialObjectMetadata) {
			gone := seen
			seen = make(map[string]bool, len(list))
			for _, o := range list {
				seen[string(o.UID)] = true
				delete(gone, string(o.UID))
			}
			v.target.Apply(func(p *observed.Cache) {
				for uid := range gone {
					p.RemoveOwner(uid)
				}
				for _, o := range list {
					p.SetOwner(string(o.UID), ownerOf(o))
				}
			})
		},
		listed: func() {},
	}
}
