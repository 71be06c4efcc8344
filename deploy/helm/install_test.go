package helm_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// Helm's own time limits, and how long the dev cluster may take to play pods.
const (
	helmTimeout = 3 * time.Minute
	patience    = 2 * time.Minute
)

// installation is a release on the dev cluster, by Helm's library, in a namespace
// of its own.
type installation struct {
	t         *testing.T
	config    *action.Configuration
	objects   dynamic.Interface
	namespace string
}

func newInstallation(t *testing.T, place string) *installation {
	t.Helper()
	file := kubeconfig(t)
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &file, &place
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := config.Init(flags, place, "secret"); err != nil {
		t.Fatal(err)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	return &installation{t: t, config: config, objects: objects, namespace: place}
}

func (in *installation) install(values map[string]any) {
	in.t.Helper()
	chart, err := loader.Load("muster")
	if err != nil {
		in.t.Fatal(err)
	}
	install := action.NewInstall(in.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = release, in.namespace, true
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, helmTimeout
	if _, err := install.RunWithContext(in.t.Context(), chart, values); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installation) upgrade(values map[string]any) {
	in.t.Helper()
	chart, err := loader.Load("muster")
	if err != nil {
		in.t.Fatal(err)
	}
	upgrade := action.NewUpgrade(in.config)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = in.namespace, kube.HookOnlyStrategy, helmTimeout
	if _, err := upgrade.RunWithContext(in.t.Context(), release, chart, values); err != nil {
		in.t.Fatal(err)
	}
}

func (in *installation) uninstall() {
	in.t.Helper()
	uninstall := action.NewUninstall(in.config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, helmTimeout
	if _, err := uninstall.Run(release); err != nil {
		in.t.Fatal(err)
	}
}

// ready waits until all replicas of a service are.
func (in *installation) ready(service string) {
	in.t.Helper()
	var status any
	err := wait.PollUntilContextTimeout(in.t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		found, err := in.get("apps", "v1", "deployments", in.namespace, release+"-"+service)
		if err != nil {
			return false, err
		}
		status = found.Object["status"]
		want, _, _ := unstructured.NestedInt64(found.Object, "spec", "replicas")
		ready, _, _ := unstructured.NestedInt64(found.Object, "status", "readyReplicas")
		return ready == want && ready > 0, nil
	})
	if err != nil {
		in.t.Errorf("%s is not ready: %v, %v", service, err, status)
	}
}

func (in *installation) get(group, version, resource, place, name string) (*unstructured.Unstructured, error) {
	return in.objects.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).
		Namespace(place).Get(context.WithoutCancel(in.t.Context()), name, metav1.GetOptions{})
}

// labelled lists what has the release's label, of the kinds that the chart makes.
func (in *installation) labelled() []string {
	in.t.Helper()
	var found []string
	for _, kind := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Version: "v1", Resource: "services"}, {Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	} {
		list, err := in.objects.Resource(kind).List(in.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
		if err != nil {
			in.t.Fatal(err)
		}
		for _, object := range list.Items {
			if object.GetNamespace() == in.namespace || strings.Contains(object.GetName(), in.namespace) {
				found = append(found, kind.Resource+"/"+object.GetName())
			}
		}
	}
	slices.Sort(found)
	return found
}

// workload makes a RayCluster as the dispatcher does.
func (in *installation) workload(place string) {
	in.t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion": "ray.io/v1", "kind": "RayCluster",
		"metadata": {"name": "at-work", "namespace": %q, "labels": {"muster.dev/workload": "0d1b9e4c-1f0e-5b7e-9a52-0c2f3f1f2a3b", "muster.dev/attempt": "1"}},
		"spec": {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "h", "image": "i"}]}}}}}`, place)); err != nil {
		in.t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(in.t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := in.objects.Resource(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}).
			Namespace(place).Create(ctx, object, metav1.CreateOptions{})
		if err != nil && strings.Contains(err.Error(), "There can be a delay between when CustomResourceDefinitions are created") {
			return false, nil // the admission policies do not know the kind yet
		}
		return err == nil, err
	})
	if err != nil {
		in.t.Fatal(err)
	}
}

// operatorsURL is that of the trial's NATS through a forwarded port.
var operatorsURL = regexp.MustCompile(`^nats://operator:[A-Za-z0-9]{32}@127\.0\.0\.1:4222$`)

// The chart is installed, upgraded and uninstalled on a real API server, whose
// nodes play the pods: everything comes to be ready, an upgrade changes what the
// values say and keeps the passwords, and what runs in the queues stays when
// Muster goes, as do the definitions.
func TestInstallUpgradeUninstall(t *testing.T) {
	t.Parallel()
	_ = applier(t) // the namespaces of queues
	in := newInstallation(t, "muster-installed")
	values := func(more map[string]any) map[string]any {
		all := map[string]any{
			"trial": map[string]any{"enabled": true}, "kubernetesController": map[string]any{"enabled": true},
			"queues": []any{map[string]any{"name": "a", "namespaces": []any{"team-a"}}},
		}
		for key, value := range more {
			all[key] = value
		}
		return all
	}
	in.install(values(nil))
	services := []string{"intake", "queue-manager", "capacity-watcher", "dispatcher"}
	for _, name := range services {
		in.ready(name)
	}
	for _, name := range []string{"appwrappers.workload.codeflare.dev", "legacyappwrappers.mcad.ibm.com"} {
		if _, err := in.get("apiextensions.k8s.io", "v1", "customresourcedefinitions", "", name); err != nil {
			t.Error(err)
		}
	}
	before, err := in.get("", "v1", "secrets", in.namespace, release+"-trial")
	if err != nil {
		t.Fatal(err)
	}
	in.workload("team-a")
	if url := in.exported(values(nil)); !operatorsURL.MatchString(url) {
		t.Errorf("as the notes say, MUSTER_NATS_URL is %q", url)
	}

	in.upgrade(values(map[string]any{
		"nodeSelector": "pool=gpu", "intake": map[string]any{"replicas": 3},
		"queues": []any{map[string]any{"name": "a", "namespaces": []any{"team-a", "team-b"}}},
	}))
	watcher, err := in.get("apps", "v1", "deployments", in.namespace, release+"-capacity-watcher")
	if err != nil {
		t.Fatal(err)
	}
	if args := fmt.Sprint(containerOf(t, watcher)["args"]); !strings.Contains(args, "--node-selector=pool=gpu") {
		t.Errorf("after the upgrade capacity-watcher has %s", args)
	}
	if _, err := in.get("rbac.authorization.k8s.io", "v1", "rolebindings", "team-b", in.namespace+"-"+release+"-dispatcher-writes"); err != nil {
		t.Errorf("after the upgrade the dispatcher has no rights in the new namespace: %v", err)
	}
	after, err := in.get("", "v1", "secrets", in.namespace, release+"-trial")
	if err != nil {
		t.Fatal(err)
	}
	passwords := 0
	for key, value := range before.Object["data"].(map[string]any) {
		if strings.HasSuffix(key, "-password") {
			passwords++
			if after.Object["data"].(map[string]any)[key] != value {
				t.Errorf("the upgrade changed %s", key)
			}
		}
	}
	if passwords < 7 {
		t.Errorf("there are %d passwords, want those of five users of NATS and three of Postgres", passwords)
	}
	if _, err := in.get("coordination.k8s.io", "v1", "leases", in.namespace, release+"-dispatcher-default"); err != nil {
		t.Errorf("after the upgrade the dispatcher has no Lease: %v", err)
	}
	if count := len(in.labelled()); count < 30 {
		t.Errorf("only %d objects are installed", count)
	}

	in.uninstall()
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return len(in.labelled()) == 0, nil
	})
	if err != nil {
		t.Errorf("after the uninstallation there are %v", in.labelled())
	}
	in.stays("team-a")
}

// A Lease that a dispatcher of an earlier version made is not Helm's: an installation
// and an upgrade leave it and its epoch alone, and the service may hold it.
func TestALeaseOfAnEarlierVersionStays(t *testing.T) {
	t.Parallel()
	_ = applier(t) // the namespaces of queues
	in := newInstallation(t, "muster-leases")
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": in.namespace}}}
	if _, err := in.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const name = release + "-dispatcher-east"
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": name, "annotations": map[string]any{"muster.dev/epoch": "7"}},
	}}
	if _, err := in.objects.Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).
		Namespace(in.namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"mode": "member", "cluster": "east", "namespaces": []any{"team-a"}, "nats": map[string]any{"url": "tls://nats:4222"}}
	in.install(values)
	in.upgrade(values)
	found, err := in.get("coordination.k8s.io", "v1", "leases", in.namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	if notes := found.GetAnnotations(); len(notes) != 1 || notes["muster.dev/epoch"] != "7" {
		t.Errorf("the Lease has annotations %v, want its epoch alone", notes)
	}
	made, err := in.get("coordination.k8s.io", "v1", "leases", in.namespace, release+"-capacity-watcher-east")
	if err != nil || made.GetAnnotations()["meta.helm.sh/release-name"] != release {
		t.Errorf("the Lease of capacity-watcher is not the release's: %v", err)
	}
	in.uninstall()
	if _, err := in.get("coordination.k8s.io", "v1", "leases", in.namespace, name); err != nil {
		t.Errorf("the uninstallation took the Lease that was there before: %v", err)
	}
}

// stays checks that a workload and the definitions are there.
func (in *installation) stays(place string) {
	in.t.Helper()
	found, err := in.get("ray.io", "v1", "rayclusters", place, "at-work")
	if err != nil || found.GetDeletionTimestamp() != nil {
		in.t.Errorf("the workload is gone with Muster: %v", err)
	}
	for _, name := range []string{"appwrappers.workload.codeflare.dev", "legacyappwrappers.mcad.ibm.com"} {
		if _, err := in.get("apiextensions.k8s.io", "v1", "customresourcedefinitions", "", name); err != nil {
			in.t.Errorf("definition %s: %v", name, err)
		}
	}
}

// A member has the two services that a cluster needs, and rights in its namespaces.
func TestInstallAMember(t *testing.T) {
	t.Parallel()
	_ = applier(t)
	in := newInstallation(t, "muster-member")
	in.install(map[string]any{"mode": "member", "cluster": "west", "namespaces": []any{"team-b"}})
	for _, name := range []string{"capacity-watcher", "dispatcher"} {
		found, err := in.get("apps", "v1", "deployments", in.namespace, release+"-"+name)
		if err != nil {
			t.Fatal(err)
		}
		if args := fmt.Sprint(containerOf(t, found)["args"]); !strings.Contains(args, "--cluster=west") {
			t.Errorf("%s has %s", name, args)
		}
	}
	for _, name := range []string{"intake", "queue-manager"} {
		if _, err := in.get("apps", "v1", "deployments", in.namespace, release+"-"+name); !apierrors.IsNotFound(err) {
			t.Errorf("a member has %s: %v", name, err)
		}
	}
	if _, err := in.get("rbac.authorization.k8s.io", "v1", "rolebindings", "team-b", in.namespace+"-"+release+"-dispatcher-writes"); err != nil {
		t.Error(err)
	}
	in.uninstall()
}
