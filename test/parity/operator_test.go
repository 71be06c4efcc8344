package parity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

// heavyClass is a runtime class with overhead.
const heavyClass = "heavy"

// patience is how long nothing may happen while pods are waited for.
const patience = 60 * time.Second

// operator is the running KubeRay operator, and all pods that it ever made.
type operator struct {
	t       *testing.T
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	profile ray.Operator

	mu      sync.Mutex
	seen    map[string][]*corev1.Pod // as created, by namespace
	changed chan struct{}
	rooms   map[string]bool // node selectors for which there is a node
}

// connect prepares the cluster and begins to record pods.
func connect(t *testing.T) *operator {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", shared.Use(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	o := &operator{
		t: t, kube: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config), profile: ray.Shipped(),
		seen: map[string][]*corev1.Pod{}, changed: make(chan struct{}, 1), rooms: map[string]bool{},
	}
	overhead := corev1.ResourceList{"cpu": quantity("250m"), "memory": quantity("64Mi")}
	o.profile.RuntimeClasses[heavyClass] = overhead
	for name, amounts := range o.profile.RuntimeClasses {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runc"}
		if len(amounts) > 0 {
			class.Overhead = &nodev1.Overhead{PodFixed: amounts}
		}
		if _, err := o.kube.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	o.record(t.Context())
	return o
}

// record keeps each pod as it is when it is first seen.
func (o *operator) record(ctx context.Context) {
	factory := informers.NewSharedInformerFactory(o.kube, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(added any) {
		pod := added.(*corev1.Pod)
		o.mu.Lock()
		o.seen[pod.Namespace] = append(o.seen[pod.Namespace], pod)
		o.mu.Unlock()
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		o.t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
}

// pods returns the pods of a namespace that there ever were, as created: those
// of Ray and of submitters, and apart from them those that clean Redis up.
func (o *operator) pods(namespace, but string) (gang, cleaners []*corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, pod := range o.seen[namespace] {
		switch {
		case pod.Labels["ray.io/node-type"] == "redis-cleanup":
			cleaners = append(cleaners, pod)
		case but == "" || pod.Labels["ray.io/cluster"] != but:
			gang = append(gang, pod)
		}
	}
	return gang, cleaners
}

// makeRoom gives each pod set a node on which all its pods fit.
func (o *operator) makeRoom(sets []workload.PodSet) {
	o.t.Helper()
	for _, set := range sets {
		labels := set.Template.NodeSelector
		var key strings.Builder
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			fmt.Fprintf(&key, "%s=%s,", name, labels[name])
		}
		if o.rooms[key.String()] {
			continue
		}
		o.rooms[key.String()] = true
		command := []string{
			"add", "--pattern", fmt.Sprintf("room-%d", len(o.rooms)),
			"--resource", "cpu=1000000", "--resource", "memory=1Ei", "--resource", "ephemeral-storage=1Ei", "--resource", "pods=100000",
			"--resource", "nvidia.com/gpu=1000000", "--resource", "google.com/tpu=1000000", "--resource", "example.com/fpga=1000000",
		}
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			command = append(command, "--label", name+"="+labels[name])
		}
		if err := shared.Use(o.t).Node(o.t.Context(), command...); err != nil {
			o.t.Fatal(err)
		}
	}
}

var resources = map[string]string{ray.RayCluster: "rayclusters", ray.RayJob: "rayjobs", ray.RayService: "rayservices"}

// create makes the object in a namespace of its own, with the service accounts
// that its pods name.
func (o *operator) create(namespace string, manifest object) error {
	ctx := o.t.Context()
	_, err := o.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for name := range accounts(manifest) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := o.kube.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return o.createIn(namespace, manifest)
}

func (o *operator) createIn(namespace string, manifest object) error {
	u := &unstructured.Unstructured{Object: manifest}
	u.SetNamespace(namespace)
	version, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil {
		return err
	}
	kind := version.WithResource(resources[u.GetKind()])
	_, err = o.dynamic.Resource(kind).Namespace(namespace).Create(o.t.Context(), u, metav1.CreateOptions{})
	return err
}

// accounts finds the service accounts that a manifest names.
func accounts(node any) map[string]bool {
	found := map[string]bool{}
	switch n := node.(type) {
	case object:
		for key, value := range n {
			if name, isText := value.(string); isText && key == "serviceAccountName" {
				found[name] = true
			}
			maps.Copy(found, accounts(value))
		}
	case []any:
		for _, item := range n {
			maps.Copy(found, accounts(item))
		}
	}
	return found
}

// remove deletes all of a kind of objects in a namespace.
func (o *operator) remove(namespace, kind string) {
	resource := ray.Resource(resources[kind])
	background := metav1.DeletePropagationBackground
	err := o.dynamic.Resource(resource).Namespace(namespace).
		DeleteCollection(o.t.Context(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	if err != nil {
		o.t.Error(err)
	}
}

// until waits, from pod to pod, until the condition holds or nothing has
// happened for long.
func (o *operator) until(met func() bool) bool {
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	for !met() {
		select {
		case <-o.changed:
			quiet.Reset(patience)
		case <-quiet.C:
			return false
		}
	}
	return true
}

// why returns what KubeRay and Kubernetes report about a namespace.
func (o *operator) why(namespace string) string {
	events, err := o.kube.CoreV1().Events(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			fmt.Fprintf(&text, "\n    %s %s: %s", e.InvolvedObject.Kind, e.Reason, e.Message)
		}
	}
	return text.String()
}
