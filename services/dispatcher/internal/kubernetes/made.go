package kubernetes

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// Labels can be taken off pods and RayClusters, or forged. What made a pod is found
// by UIDs.
const (
	byOwner = "owner" // UID of the controller
	byUID   = "uid"
)

var madeIndexers = cache.Indexers{byWorkload: workloadsOf, byOwner: ownersOf, byUID: uidsOf}

func ownersOf(object any) ([]string, error) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no owners", object)
	}
	if controller := metav1.GetControllerOfNoCopy(meta); controller != nil {
		return []string{string(controller.UID)}, nil
	}
	return nil, nil
}

func uidsOf(object any) ([]string, error) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no UID", object)
	}
	return []string{string(meta.GetUID())}, nil
}

// isOurs reports whether this cluster's dispatchers have made the object, by its
// labels.
func (w *Watch) isOurs(object metav1.Object) bool {
	return object.GetLabels()[kube.ClusterLabel] == w.cluster
}

// RayClusters returns the UIDs of the RayClusters among the objects, and of those
// that one of the objects controls, whatever their labels say.
func (w *Watch) RayClusters(objects []string) []string {
	index := w.objects[workload.KindRayCluster].GetIndexer()
	var uids []string
	for _, uid := range objects {
		for _, by := range []string{byUID, byOwner} {
			found, err := index.ByIndex(by, uid)
			if err != nil {
				continue // the indexes are there since StartWatch
			}
			for _, object := range found {
				uids = append(uids, string(object.(*unstructured.Unstructured).GetUID()))
			}
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// Made returns the pods that the objects with these UIDs control, whatever their
// labels say.
func (w *Watch) Made(owners []string) []gang.Pod {
	var pods []gang.Pod
	for _, informer := range []cache.SharedIndexInformer{w.pods, w.others} {
		for _, uid := range owners {
			found, err := informer.GetIndexer().ByIndex(byOwner, uid)
			if err != nil {
				continue // the index is there since StartWatch
			}
			for _, object := range found {
				pods = append(pods, seen(object))
			}
		}
	}
	return pods
}

// madeFor returns the workload whose object made the pod or RayCluster, empty when
// none did.
func (w *Watch) madeFor(object metav1.Object) workload.ID {
	for range 3 { // a pod, its RayCluster, and the RayJob or RayService of that
		controller := metav1.GetControllerOfNoCopy(object)
		if controller == nil || w.objects[controller.Kind] == nil {
			return ""
		}
		found, ok, err := w.objects[controller.Kind].GetStore().GetByKey(object.GetNamespace() + "/" + controller.Name)
		if err != nil || !ok {
			return ""
		}
		owner := found.(*unstructured.Unstructured)
		if owner.GetUID() != controller.UID {
			return ""
		}
		if w.isOurs(owner) {
			return workload.ID(owner.GetLabels()[kube.WorkloadLabel])
		}
		object = owner
	}
	return ""
}
