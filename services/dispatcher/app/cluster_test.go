package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/clustertest"
)

// patience bounds each wait for something to become true.
const patience = 30 * time.Second

// shared is the dev cluster of all tests here; each uses a namespace and nodes
// of its own.
var shared = clustertest.Shared{Name: "dispatcher-test", Prepare: func(ctx context.Context, c *clustertest.Cluster) error {
	admin, err := adminConfig(c)
	if err != nil {
		return err
	}
	if err := install.Install(ctx, admin, nil, nil); err != nil {
		return err
	}
	kubeconfig, err := install.Kubeconfig(ctx, admin, rbac.Dispatcher)
	if err != nil {
		return err
	}
	return os.WriteFile(accountFile(c), kubeconfig, 0o600)
}}

func TestMain(m *testing.M) {
	if settings := os.Getenv(childVariable); settings != "" {
		os.Exit(runChild(settings))
	}
	os.Exit(shared.Run(m))
}

// accountFile is the kubeconfig of the service's account.
func accountFile(c *clustertest.Cluster) string { return filepath.Join(c.Dir, "kubeconfig") }

// world is what a test has of the dev cluster.
type world struct {
	t          *testing.T
	core       kubernetes.Interface
	objects    dynamic.Interface
	kubeconfig string
	namespace  string
	nodes      []string // four CPUs each
}

func newWorld(t *testing.T, name string, nodes int) *world {
	t.Helper()
	cluster := shared.Use(t)
	admin, err := adminConfig(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := install.Names(t.Context(), admin, []string{name}, []string{name}); err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, core: kubernetes.NewForConfigOrDie(admin), objects: dynamic.NewForConfigOrDie(admin),
		kubeconfig: accountFile(cluster), namespace: name,
	}
	w.awaitWriteRights(admin)
	for i := range nodes {
		w.nodes = append(w.nodes, fmt.Sprintf("%s-%d", name, i))
	}
	if nodes > 0 {
		err = cluster.Node(t.Context(), "add", "--pattern", name+"-{0}", "--count", fmt.Sprint(nodes),
			"--label", "test.muster.dev/"+name+"=yes", "--resource", "cpu=4", "--resource", "memory=32Gi")
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// adminConfig is what the tests change the cluster with.
func adminConfig(c *clustertest.Cluster) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err == nil {
		config.QPS = -1
	}
	return config, err
}

// awaitWriteRights returns when the API server's authorizer has heard that the
// service may write in the namespace.
func (w *world) awaitWriteRights(admin *rest.Config) {
	w.t.Helper()
	as := rest.CopyConfig(admin)
	as.Impersonate.UserName = "system:serviceaccount:" + rbac.Namespace + ":" + rbac.Dispatcher
	client := dynamic.NewForConfigOrDie(as)
	w.await("rights in the namespace", func() bool {
		err := client.Resource(resource("RayCluster")).Namespace(w.namespace).Delete(w.t.Context(), "none", metav1.DeleteOptions{})
		return apierrors.IsNotFound(err)
	})
}

func resource(kind string) schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{
		"RayCluster": ray.Resource("rayclusters"),
		"RayJob":     ray.Resource("rayjobs"),
	}[kind]
}

// await asks again and again until the condition is met.
func (w *world) await(what string, met func() bool) {
	w.t.Helper()
	w.awaitEvery(50*time.Millisecond, what, met)
}

// awaitEvery is await for a condition that may pass again soon.
func (w *world) awaitEvery(interval time.Duration, what string, met func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("not within %s: %s\n%s", patience, what, w.describe())
		}
	}
}

// object returns an object, nil when there is none.
func (w *world) object(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	found, err := w.objects.Resource(resource(kind)).Namespace(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) delete(kind, name string) {
	w.t.Helper()
	if err := w.objects.Resource(resource(kind)).Namespace(w.namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// pods returns the pods of a workload.
func (w *world) pods(id workload.ID) []corev1.Pod {
	w.t.Helper()
	list, err := w.core.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: kube.WorkloadLabel + "=" + string(id)})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// running counts the workload's pods that run, by pod set and node.
func (w *world) running(id workload.ID) map[string]int {
	count := map[string]int{}
	for _, pod := range w.pods(id) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			count[pod.Labels[kube.PodSetLabel]+" on "+pod.Spec.NodeName]++
		}
	}
	return count
}

// describe describes the namespace's pods, for a failed wait.
func (w *world) describe() string {
	list, err := w.core.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var text string
	for _, pod := range list.Items {
		text += fmt.Sprintf("%s: %s on %q, selector %v, gates %v, deleting %t\n", pod.Name, pod.Status.Phase, pod.Spec.NodeName,
			pod.Spec.NodeSelector, pod.Spec.SchedulingGates, pod.DeletionTimestamp != nil)
	}
	return text
}
