package install_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/local/devcluster"
)

// TestInstall applies everything twice and tries what each service account may
// do, and what it may not.
func TestInstall(t *testing.T) {
	t.Parallel()
	admin := startCluster(t)
	ctx := t.Context()
	for range 2 {
		if err := install.Install(ctx, admin, []string{"east"}, []string{"queue-a", "default"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := install.Install(ctx, admin, nil, []string{"Not a namespace"}); err == nil {
		t.Error("a bad namespace was taken")
	}
	if err := install.Install(ctx, admin, []string{"Not a cluster"}, nil); err == nil {
		t.Error("a bad name of the cluster was taken")
	}
	watcher, dispatcher := account(t, admin, rbac.CapacityWatcher), account(t, admin, rbac.Dispatcher)
	for _, try := range []struct {
		name string
		do   func() error
		may  bool
	}{
		{"watcher lists nodes", listNodes(ctx, watcher), true},
		{"watcher lists pods of all namespaces", listPods(ctx, watcher), true},
		{"watcher lists RayClusters", listRayClusters(ctx, watcher), true},
		{"watcher deletes a RayCluster of a queue's namespace", deleteRayCluster(ctx, watcher, "queue-a"), false},
		{"watcher deletes a pod", deletePod(ctx, watcher), false},
		{"dispatcher lists nodes", listNodes(ctx, dispatcher), false},
		{"dispatcher lists pods of all namespaces", listPods(ctx, dispatcher), true},
		{"dispatcher lists RayClusters", listRayClusters(ctx, dispatcher), true},
		{"dispatcher deletes a RayCluster of a queue's namespace", deleteRayCluster(ctx, dispatcher, "queue-a"), true},
		{"dispatcher deletes a RayCluster elsewhere", deleteRayCluster(ctx, dispatcher, "kube-system"), false},
		{"dispatcher deletes a pod of a queue's namespace", deletePod(ctx, dispatcher), true},
	} {
		t.Run(try.name, func(t *testing.T) {
			err := try.do()
			if may := err == nil || apierrors.IsNotFound(err); may != try.may {
				t.Errorf("%s: allowed is %t, want %t (error %v)", try.name, may, try.may, err)
			}
		})
	}
}

func startCluster(t *testing.T) *rest.Config {
	t.Helper()
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{
		Binary: cmp.Or(os.Getenv(devcluster.EnvBinary), filepath.Join("..", "..", "bin", "devcluster")), Name: fmt.Sprintf("install-test-%d", os.Getpid()), Fleet: "laptop",
	})
	if errors.Is(err, devcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// account returns a configuration with the rights of a service account, once
// the API server's authorizer has heard of them.
func account(t *testing.T, admin *rest.Config, name string) *rest.Config {
	t.Helper()
	kubeconfig, err := install.Kubeconfig(t.Context(), admin, name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := listPods(t.Context(), config)()
		if err == nil {
			return config
		}
		if !apierrors.IsForbidden(err) || time.Now().After(deadline) {
			t.Fatalf("%s cannot list pods: %v", name, err)
		}
	}
}

func rayClusters() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
}

func listNodes(ctx context.Context, config *rest.Config) func() error {
	return func() error {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	}
}

func listPods(ctx context.Context, config *rest.Config) func() error {
	return func() error {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(corev1.NamespaceAll).List(ctx, metav1.ListOptions{})
		return err
	}
}

func deletePod(ctx context.Context, config *rest.Config) func() error {
	return func() error {
		return kubernetes.NewForConfigOrDie(config).CoreV1().Pods("queue-a").Delete(ctx, "none", metav1.DeleteOptions{})
	}
}

func listRayClusters(ctx context.Context, config *rest.Config) func() error {
	return func() error {
		_, err := dynamic.NewForConfigOrDie(config).Resource(rayClusters()).List(ctx, metav1.ListOptions{})
		return err
	}
}

func deleteRayCluster(ctx context.Context, config *rest.Config, namespace string) func() error {
	return func() error {
		return dynamic.NewForConfigOrDie(config).Resource(rayClusters()).Namespace(namespace).Delete(ctx, "none", metav1.DeleteOptions{})
	}
}
