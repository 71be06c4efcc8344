package app_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/testkit/clustertest"
)

// patience bounds each wait for something to become true.
const patience = 20 * time.Second

// shared is the dev cluster of all tests; each test has its own nodes.
var shared = clustertest.Shared{Name: "watcher-test", Prepare: func(ctx context.Context, c *clustertest.Cluster) error {
	admin, err := adminConfig(c)
	if err != nil {
		return err
	}
	if err := install.Install(ctx, admin, nil, nil); err != nil {
		return err
	}
	kubeconfig, err := install.Kubeconfig(ctx, admin, rbac.CapacityWatcher)
	if err != nil {
		return err
	}
	if err := os.WriteFile(accountFile(c), kubeconfig, 0o600); err != nil {
		return err
	}
	return awaitRights(ctx, kubeconfig)
}}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// accountFile is the kubeconfig of the service's account.
func accountFile(c *clustertest.Cluster) string { return filepath.Join(c.Dir, "kubeconfig") }

// world is a test's part of the dev cluster: nodes with its own label.
type world struct {
	t          *testing.T
	cluster    *devcluster.Cluster
	client     kubernetes.Interface
	kubeconfig string
	label      string // key of the label on its nodes
	lease      string // name of its lease: the tests share the cluster, and not the NATS
}

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	cluster := shared.Use(t)
	admin, err := adminConfig(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if err := install.Names(t.Context(), admin, []string{name}, nil); err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, cluster: cluster.Cluster, client: kubernetes.NewForConfigOrDie(admin),
		kubeconfig: accountFile(cluster), label: "test.muster.dev/" + name, lease: rbac.CapacityWatcher + "-" + name,
	}
}

// adminConfig is the configuration of the cluster's administrator.
func adminConfig(c *clustertest.Cluster) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err == nil {
		config.QPS = -1
	}
	return config, err
}

// awaitRights returns when the API server's authorizer knows the roles.
func awaitRights(ctx context.Context, kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			return err
		}
	}
}

func (w *world) node(args ...string) {
	w.t.Helper()
	if err := w.cluster.Node(w.t.Context(), args...); err != nil {
		w.t.Fatal(err)
	}
}

// addNode adds a node with 8 CPUs, 32 GiB and 2 GPUs.
func (w *world) addNode(name string) {
	w.t.Helper()
	w.node("add", "--pattern", name, "--label", w.label+"=yes",
		"--resource", "cpu=8", "--resource", "memory=32Gi", "--resource", "nvidia.com/gpu=2")
	w.t.Cleanup(func() {
		err := w.client.CoreV1().Nodes().Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			w.t.Error(err)
		}
	})
}

// addPod creates a pod that requests one CPU, bound to a node.
func (w *world) addPod(name, node string, labels map[string]string) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{
				Name: "c", Image: "none",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("1")}},
			}},
		},
	}
	if _, err := w.client.CoreV1().Pods("default").Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.deletePod(name) })
}

func (w *world) deletePod(name string) {
	w.t.Helper()
	err := w.client.CoreV1().Pods("default").Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}

// setPod changes the status of a pod.
func (w *world) setPod(name, patch string) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Pods("default").Patch(w.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		w.t.Fatal(err)
	}
}

// endPod sets the status of a running pod whose containers have ended.
func (w *world) endPod(name string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		pod, err := w.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		if pod.Status.Phase == corev1.PodRunning {
			break
		}
	}
	_, err := w.client.CoreV1().Pods("default").Patch(w.t.Context(), name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		w.t.Fatal(err)
	}
}

// awaitNoPods returns when the pods are gone.
func (w *world) awaitNoPods(names ...string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for _, name := range names {
		for {
			_, err := w.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				break
			}
			if err != nil {
				w.t.Fatalf("pod %s: %v", name, err)
			}
		}
	}
}
