package kubernetes

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// largePod is a pod as clusters have them: labels, annotations, managed fields,
// volumes, and containers with variables.
func largePod(i int) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprintf("tenant-%d", i%20), Name: fmt.Sprintf("web-6d4b75cb6d-%05d", i), UID: types.UID(fmt.Sprintf("5f0c3a8e-6a3b-4c2d-9f11-%012d", i)),
		ResourceVersion: fmt.Sprint(1_000_000 + i), Labels: map[string]string{}, Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6d4b75cb6d", UID: types.UID(fmt.Sprintf("replica-set-%d", i/3)), Controller: &yes}},
		ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 3000))}},
	}}
	for j := range 10 {
		pod.Labels[fmt.Sprintf("example.com/label-%d-%d", i, j)] = fmt.Sprintf("value-%d", i)
		pod.Annotations[fmt.Sprintf("example.com/annotation-%d-%d", i, j)] = fmt.Sprintf("%0200d", i)
	}
	for c := range 3 {
		container := corev1.Container{
			Name: fmt.Sprintf("container-%d", c), Image: fmt.Sprintf("registry.example.com/team/image:%d", i),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}},
		}
		for e := range 20 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d_%d", i, e), Value: fmt.Sprintf("%050d", i)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	pod.Spec.NodeName = fmt.Sprintf("node-%d", i%500)
	return pod
}

// TestMemoryOfOtherPods: what is kept of the live pods of a cluster that are not of
// Muster fits beside all else into the container's memory, with 20,000 of them. The
// test does not run beside others: it measures the heap.
func TestMemoryOfOtherPods(t *testing.T) {
	const (
		pods    = 20_000
		eachMax = 2 << 10 // bytes: 40 MB for all
	)
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, byWorkload: workloadsOf, byOwner: ownersOf})
	before := heap()
	for i := range pods {
		kept, err := trimOther(largePod(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := indexer.Add(kept); err != nil {
			t.Fatal(err)
		}
	}
	each := (heap() - before) / pods
	runtime.KeepAlive(indexer)
	t.Logf("%d pods take %d bytes each, %d MB together", pods, each, each*pods>>20)
	if each > eachMax {
		t.Errorf("a pod takes %d bytes in the cache, want %d at most", each, eachMax)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // finalizers of the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
