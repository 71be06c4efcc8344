package kubernetes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/services/dispatcher/internal/gang"
)

// other is a pod without our label, in the cache: what is to be known of it, in less
// room than a pod takes, since there may be many.
type other struct {
	metav1.ObjectMeta
	pod gang.Pod
}

func trimOther(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &other{pod: podOf(pod)}
	kept.Namespace, kept.Name, kept.UID, kept.ResourceVersion = pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion
	kept.DeletionTimestamp = pod.DeletionTimestamp
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return kept, nil
}

// seen returns the pod of an object in one of the caches of pods.
func seen(object any) gang.Pod {
	if o, ok := object.(*other); ok {
		return o.pod
	}
	return podOf(object.(*corev1.Pod))
}

// PodsIn returns the pods in a namespace that have not ended: those that carry our label,
// and the others.
func (w *Watch) PodsIn(namespace string) (ours, others []gang.Pod) {
	from := func(informer cache.SharedIndexInformer) (pods []gang.Pod) {
		found, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
		if err != nil {
			return nil // the index is there since StartWatch
		}
		for _, object := range found {
			if pod := seen(object); !pod.Ended {
				pods = append(pods, pod)
			}
		}
		return pods
	}
	return from(w.pods), from(w.others)
}

// intermediateKinds are the kinds of controllers between a pod and what Muster creates.
var intermediateKinds = map[string]schema.GroupVersionResource{
	"ReplicaSet": {Group: "apps", Version: "v1", Resource: "replicasets"},
	"Job":        {Group: "batch", Version: "v1", Resource: "jobs"},
}

// ControllerOf reads, uncached, the UID of the controller of a pod's controller, such as the
// Deployment of a ReplicaSet; empty when there is none, when the pod's controller is gone,
// and for kinds that Muster creates.
func (c *Client) ControllerOf(ctx context.Context, namespace string, of gang.Controller) (uid string, err error) {
	resource, known := intermediateKinds[of.Kind]
	if !known {
		return "", nil
	}
	found, err := c.objects.Resource(resource).Namespace(namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get %s %s/%s: %w", of.Kind, namespace, of.Name, err)
	case string(found.GetUID()) != of.UID:
		return "", nil
	}
	if controller := metav1.GetControllerOfNoCopy(found); controller != nil {
		return string(controller.UID), nil
	}
	return "", nil
}
