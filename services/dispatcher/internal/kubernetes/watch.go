package kubernetes

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// byWorkload indexes caches by the workload label.
const byWorkload = "workload"

// Watch is a cache of everything that this cluster's dispatchers have made.
type Watch struct {
	cluster string
	objects map[string]cache.SharedIndexInformer // by kind; all RayClusters, of the others ours
	pods    cache.SharedIndexInformer            // that carry our label
	// others are all pods that do not and have not ended.
	others cache.SharedIndexInformer
	// requests for nodes; nil where the API server serves none.
	requests cache.SharedIndexInformer
	// requestsFailed is when their watch last failed, in nanoseconds of Unix time.
	requestsFailed atomic.Int64
}

// StartWatch fills the caches and keeps them until ctx ends. changed is called
// for each workload of which something changed, also while they are filled.
func (c *Client) StartWatch(ctx context.Context, changed func(workload.ID)) (*Watch, error) {
	labelled := func(options *metav1.ListOptions) { options.LabelSelector = c.ours() }
	others := func(options *metav1.ListOptions) {
		options.LabelSelector = kube.ClusterLabel + "!=" + c.cluster
		options.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
	}
	w := &Watch{cluster: c.cluster, objects: map[string]cache.SharedIndexInformer{}}
	var synced []cache.InformerSynced
	for kind, resource := range resources {
		tweak := labelled
		if kind == workload.KindRayCluster { // whose labels others can take away
			tweak = nil
		}
		w.objects[kind] = dynamicinformer.NewFilteredDynamicInformer(c.objects, resource, metav1.NamespaceAll, 0, madeIndexers, tweak).Informer()
	}
	for kind, informer := range w.objects {
		if err := w.prepare(informer, changed, trimObject); err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind, err)
		}
	}
	for into, tweak := range map[*cache.SharedIndexInformer]func(*metav1.ListOptions){&w.pods: labelled, &w.others: others} {
		informer := informers.NewSharedInformerFactoryWithOptions(c.core, 0, informers.WithTweakListOptions(tweak)).Core().V1().Pods().Informer()
		if err := informer.AddIndexers(cache.Indexers{byWorkload: workloadsOf, byOwner: ownersOf}); err != nil {
			return nil, fmt.Errorf("watch pods: %w", err)
		}
		*into = informer
	}
	for informer, trim := range map[cache.SharedIndexInformer]cache.TransformFunc{w.pods: trimPod, w.others: trimOther} {
		if err := w.prepare(informer, changed, trim); err != nil {
			return nil, fmt.Errorf("watch pods: %w", err)
		}
	}
	if err := c.watchRequests(ctx, w, labelled, changed); err != nil {
		return nil, err
	}
	for _, informer := range w.informers() {
		go informer.RunWithContext(ctx)
		synced = append(synced, informer.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("fill caches: %w", ctx.Err())
	}
	return w, nil
}

func (w *Watch) informers() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{w.pods, w.others}
	for _, informer := range w.objects {
		all = append(all, informer)
	}
	return all
}

func (w *Watch) prepare(informer cache.SharedIndexInformer, changed func(workload.ID), trim cache.TransformFunc) error {
	if err := informer.SetTransform(trim); err != nil {
		return err
	}
	enqueue := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		meta, ok := object.(metav1.Object)
		if !ok {
			return
		}
		id := workload.ID("")
		if w.isOurs(meta) {
			id = workload.ID(meta.GetLabels()[kube.WorkloadLabel])
			changed(id)
		}
		if of := w.madeFor(meta); of != "" && of != id {
			changed(of)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, DeleteFunc: enqueue,
		UpdateFunc: func(old, object any) {
			if before, ok := old.(metav1.Object); ok && w.isOurs(before) {
				if after, ok := object.(metav1.Object); ok && after.GetLabels()[kube.WorkloadLabel] != before.GetLabels()[kube.WorkloadLabel] {
					enqueue(old)
				}
			}
			enqueue(object)
		},
	})
	return err
}

func workloadsOf(object any) ([]string, error) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no labels", object)
	}
	return []string{meta.GetLabels()[kube.WorkloadLabel]}, nil
}

// trimObject keeps of a Ray object what objectOf reads.
func trimObject(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	groups, _, _ := unstructured.NestedSlice(u.Object, "spec", "workerGroupSpecs") // absent reads as empty
	for i := range groups {
		if group, ok := groups[i].(map[string]any); ok {
			delete(group, "template")
		}
	}
	autoscaled, _, _ := unstructured.NestedBool(u.Object, "spec", "enableInTreeAutoscaling")
	u.Object["spec"] = map[string]any{"workerGroupSpecs": groups, "enableInTreeAutoscaling": autoscaled}
	u.SetManagedFields(nil)
	return u, nil
}

// trimPod keeps of a pod what podOf reads.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, Annotations: checkpointOf(pod), DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: pod.OwnerReferences,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, NodeSelector: pod.Spec.NodeSelector, SchedulingGates: pod.Spec.SchedulingGates,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

// checkpointOf keeps of a pod's annotations the report of its last checkpoint, if it has one.
func checkpointOf(pod *corev1.Pod) map[string]string {
	at, reported := pod.Annotations[kube.LastCheckpointKey]
	if !reported {
		return nil
	}
	return map[string]string{kube.LastCheckpointKey: at}
}

// Object returns an object from the cache, nil when it is not there.
func (w *Watch) Object(kind, namespace, name string) *Object {
	found, ok, err := w.objects[kind].GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil
	}
	u := found.(*unstructured.Unstructured)
	if !w.isOurs(u) {
		return nil
	}
	object := objectOf(kind, u)
	return &object
}

// Pods returns the pods of a workload from the cache.
func (w *Watch) Pods(id workload.ID) []gang.Pod {
	found, err := w.pods.GetIndexer().ByIndex(byWorkload, string(id))
	if err != nil {
		return nil // the index is there since StartWatch
	}
	pods := make([]gang.Pod, len(found))
	for i, object := range found {
		pods[i] = podOf(object.(*corev1.Pod))
	}
	return pods
}

// Workloads returns the workloads of which there are pods.
func (w *Watch) Workloads() []workload.ID {
	values := w.pods.GetIndexer().ListIndexFuncValues(byWorkload)
	ids := make([]workload.ID, len(values))
	for i, value := range values {
		ids[i] = workload.ID(value)
	}
	return ids
}

// Clusters returns the RayClusters of a workload from the cache, whatever made
// them.
func (w *Watch) Clusters(id workload.ID) []Object {
	found, err := w.objects[workload.KindRayCluster].GetIndexer().ByIndex(byWorkload, string(id))
	if err != nil {
		return nil // the index is there since StartWatch
	}
	clusters := make([]Object, 0, len(found))
	for _, object := range found {
		if u := object.(*unstructured.Unstructured); w.isOurs(u) {
			clusters = append(clusters, objectOf(workload.KindRayCluster, u))
		}
	}
	return clusters
}

// Objects returns all objects in the cache that nothing else controls.
func (w *Watch) Objects() []Object {
	var all []Object
	for kind, informer := range w.objects {
		for _, found := range informer.GetStore().List() {
			u := found.(*unstructured.Unstructured)
			if object := objectOf(kind, u); w.isOurs(u) && !object.Owned {
				all = append(all, object)
			}
		}
	}
	return all
}
