package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/service"
	intake "muster.dev/muster/services/intake/app"
)

// world is a cluster in which the rules are enforced one way or another.
type world struct {
	t     *testing.T
	admin *rest.Config
	// address is that of intake's webhooks.
	address string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	binary := os.Getenv(devcluster.EnvBinary)
	if binary == "" {
		binary = filepath.Join("..", "..", "bin", "devcluster")
	}
	c, err := devcluster.Start(t.Context(), devcluster.Options{Binary: binary, Name: fmt.Sprintf("admission-%d", os.Getpid()), Fleet: "laptop"})
	if errors.Is(err, devcluster.ErrNotBuilt) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	admin, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	admin.QPS = -1
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return &world{t: t, admin: admin, address: free.Addr().String()}
}

func (w *world) install(config *rest.Config, admission install.Admission, want install.Chosen) {
	w.t.Helper()
	got, err := install.InstallWith(w.t.Context(), config, install.Options{
		Clusters: []string{"east"}, Namespaces: []string{namespace}, Admission: admission, WebhookURL: "https://" + w.address,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if got != want {
		w.t.Fatalf("%s installs %s, want %s", admission, got, want)
	}
}

// without returns a way to the API server on which a kind of policies is not served.
func (w *world) without(resource string) *rest.Config {
	w.t.Helper()
	transport, err := rest.TransportFor(w.admin)
	if err != nil {
		w.t.Fatal(err)
	}
	target, err := url.Parse(w.admin.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/"+resource) {
			http.NotFound(answer, r)
			return
		}
		proxy.ServeHTTP(answer, r)
	}))
	w.t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// prepare gives the users their rights and creates the objects that requests change.
func (w *world) prepare() {
	w.t.Helper()
	for _, document := range rightsOfUsers() {
		w.apply(document)
	}
	for resource, text := range present() {
		object := w.object(text)
		if _, err := w.client("").Resource(resource).Namespace(namespace).Create(w.t.Context(), object, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) apply(text string) {
	w.t.Helper()
	object := w.object(text)
	resource := strings.ToLower(object.GetKind()) + "s"
	gv := object.GroupVersionKind().GroupVersion()
	_, err := w.client("").Resource(gv.WithResource(resource)).Patch(w.t.Context(), object.GetName(), types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) object(text string) *unstructured.Unstructured {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	return object
}

// client acts for the user, or as administrator.
func (w *world) client(user string) dynamic.Interface {
	w.t.Helper()
	config := rest.CopyConfig(w.admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	if user != "" {
		config.Impersonate.Groups = []string{"system:authenticated", "team"}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// send makes a request without effect.
func (w *world) send(r request, place string) (*unstructured.Unstructured, error) {
	ctx, dry := w.t.Context(), []string{metav1.DryRunAll}
	objects := w.client(r.user).Resource(r.resource).Namespace(place)
	var below []string
	if r.status {
		below = []string{"status"}
	}
	switch {
	case r.create != "":
		return objects.Create(ctx, w.object(r.create), metav1.CreateOptions{DryRun: dry})
	case r.patch != "":
		return objects.Patch(ctx, "present", types.JSONPatchType, []byte(r.patch), metav1.PatchOptions{DryRun: dry}, below...)
	}
	return nil, objects.Delete(ctx, "present", metav1.DeleteOptions{DryRun: dry})
}

// until polls what the API server learns from its own watches.
func (w *world) until(what string, met func() (bool, string)) {
	w.t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (ok bool, _ error) {
		ok, last = met()
		return ok, nil
	})
	if err != nil {
		w.t.Fatalf("not within %s: %s; last: %s", patience, what, last)
	}
}

// serve runs two intakes, with intake's own rights, until stop. They start at once and share
// the certificates; the API server calls the first.
func (w *world) serve() (stop func()) {
	w.t.Helper()
	server, err := natsserver.Start(w.t.TempDir(), -1)
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := bus.Connect(w.t.Context(), bus.Options{URL: server.URL(), Name: "test", Logger: zap.NewNop()})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := b.EnsureStreams(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	content, err := install.Kubeconfig(w.t.Context(), w.admin, rbac.Intake)
	if err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var runtimes []*service.Runtime
	ended := make(chan error, 2)
	for _, address := range []string{w.address, "127.0.0.1:0"} {
		config := &intake.Config{
			NATS: bus.Settings{URL: server.URL()}, Cluster: "east", Kubeconfig: file, KubeNamespaces: rbac.Namespace,
			Webhooks: intake.WebhookConfig{Address: address, Hosts: "127.0.0.1"},
		}
		if err := config.Validate(); err != nil {
			w.t.Fatal(err)
		}
		runtime := service.NewRuntime(zap.NewNop(), "intake")
		runtimes = append(runtimes, runtime)
		go func() { ended <- intake.Run(ctx, config, runtime) }()
	}
	for _, runtime := range runtimes {
		if err := runtime.Health.WaitReady(ctx); err != nil {
			w.t.Fatal(err)
		}
	}
	w.oneAuthority()
	return func() {
		cancel()
		<-ended
		<-ended
		b.Close()
		server.Stop()
	}
}

// rightsOfUsers let every user of the table change everything but the status of RayClusters,
// which is the operator's.
func rightsOfUsers() []string {
	role := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"everyone"},"rules":[
		{"apiGroups":["ray.io"],"resources":["rayclusters","rayjobs"],"verbs":["*"]},
		{"apiGroups":["workload.codeflare.dev"],"resources":["appwrappers"],"verbs":["*"]},
		{"apiGroups":["apps"],"resources":["deployments"],"verbs":["*"]},{"apiGroups":[""],"resources":["pods"],"verbs":["*"]}]}`
	status := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"operator"},"rules":[
		{"apiGroups":["ray.io"],"resources":["rayclusters/status"],"verbs":["update","patch"]}]}`
	bind := func(role, kind, name string) string {
		return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":%[1]q},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[1]q},
			"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":%[2]q,"name":%[3]q}]}`, role, kind, name)
	}
	return []string{
		role, status, bind("everyone", "Group", "team"), bind("operator", "User", operator),
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + elsewhere + `"}}`,
	}
}
