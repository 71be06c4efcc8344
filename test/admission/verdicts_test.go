package admission

import (
	"context"
	"encoding/base64"
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

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

const (
	patience  = time.Minute
	namespace = "research" // of a queue
	elsewhere = "elsewhere"
)

// world is a cluster in which the rules are enforced one way or another.
type world struct {
	t     *testing.T
	admin *rest.Config
	// address is that of intake's webhooks.
	address string
}

// verdict is what came of a request: the refusal, or what the rules made of the object.
type verdict struct {
	Code    int32
	Reason  metav1.StatusReason
	Message string
	Made    map[string]any
}

// TestVerdictsAreAlike: policies, webhooks, and webhooks for mutation alone give the same
// verdicts; without intake only what is Muster's is refused.
func TestVerdictsAreAlike(t *testing.T) {
	w := newWorld(t)
	w.install(w.admin, install.Policies, install.Chosen{Validating: install.Policies, Mutating: install.Policies})
	w.prepare()
	w.enforcedBy("ValidatingAdmissionPolicy")
	want := w.play()
	for i, r := range requests() {
		if got := want[r.name]; (got.Message == "") != (r.want == "") || !strings.Contains(got.Message, r.want) {
			t.Errorf("%d: %s: %+v, want a message that says %q", i, r.name, got, r.want)
		}
	}

	w.install(w.admin, install.Webhooks, install.Chosen{Validating: install.Webhooks, Mutating: install.Webhooks})
	stop := w.serve()
	w.enforcedBy("admission webhook")
	w.compare("webhooks", want)
	w.install(w.admin, install.Webhooks, install.Chosen{Validating: install.Webhooks, Mutating: install.Webhooks}) // changes nothing
	w.compare("webhooks, installed twice", want)
	stop()
	w.goesOnWithoutIntake()

	stop = w.serve()
	w.install(w.without("mutatingadmissionpolicies"), install.Automatic, install.Chosen{Validating: install.Policies, Mutating: install.Webhooks})
	w.enforcedBy("ValidatingAdmissionPolicy")
	w.compare("webhooks for mutation", want)

	w.install(w.admin, install.Automatic, install.Chosen{Validating: install.Policies, Mutating: install.Policies})
	stop()
	w.enforcedBy("ValidatingAdmissionPolicy")
	w.compare("policies again", want)
	w.nothingOfWebhooks()
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

// play sends all requests.
func (w *world) play() map[string]verdict {
	w.t.Helper()
	verdicts := map[string]verdict{}
	for _, r := range requests() {
		made, err := w.send(r, namespace)
		v := verdict{Made: map[string]any{}}
		if err != nil {
			status := apierrors.APIStatus(nil)
			if !errors.As(err, &status) {
				w.t.Fatalf("%s: %v", r.name, err)
			}
			v.Code, v.Reason, v.Message = status.Status().Code, status.Status().Reason, rule(status.Status().Message)
		} else if made != nil {
			v.Made["annotations"] = made.GetAnnotations()
			v.Made["labels"] = made.GetLabels()
			v.Made["suspend"], _, _ = unstructured.NestedFieldNoCopy(made.Object, "spec", "suspend")
		}
		verdicts[r.name] = v
	}
	return verdicts
}

// rule is the message of the rule that refuses, without who says so.
func rule(message string) string {
	for _, before := range []string{"denied request: ", "denied the request: "} {
		if _, after, found := strings.Cut(message, before); found {
			return after
		}
	}
	return message
}

func (w *world) compare(how string, want map[string]verdict) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.play()); diff != "" {
		w.t.Errorf("verdicts of %s (-policies +%s):\n%s", how, how, diff)
	}
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

// enforcedBy waits until the rules for validation are enforced so, and those for mutation
// are.
func (w *world) enforcedBy(what string) {
	w.t.Helper()
	w.until("the rules are enforced by "+what, func() (bool, string) {
		for _, r := range requests() {
			made, err := w.send(r, namespace)
			switch {
			case r.status || r.patch == "" && r.create == "":
			case r.want != "" && (err == nil || !strings.Contains(err.Error(), what)):
				return false, fmt.Sprintf("%s: %v", r.name, err)
			case r.want == "" && err != nil:
				return false, fmt.Sprintf("%s: %v", r.name, err)
			case r.create != "" && r.resource == wrappers && made.GetAnnotations()["muster.dev/user"] != tenant:
				return false, r.name
			}
		}
		return true, ""
	})
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

// oneAuthority checks that the intakes have agreed on one.
func (w *world) oneAuthority() {
	w.t.Helper()
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secret, err := w.client("").Resource(secrets).Namespace(rbac.Namespace).Get(w.t.Context(), rbac.WebhookSecret, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	authority, _, _ := unstructured.NestedString(secret.Object, "data", "authority.crt")
	decoded, err := base64.StdEncoding.DecodeString(authority)
	if count := strings.Count(string(decoded), "BEGIN CERTIFICATE"); err != nil || count != 1 {
		w.t.Errorf("there are %d authorities, want one: %v", count, err)
	}
}

// goesOnWithoutIntake checks what is refused while the webhooks have no server.
func (w *world) goesOnWithoutIntake() {
	w.t.Helper()
	wrapper := request{user: tenant, resource: wrappers, create: `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"made"},"spec":{"components":[]}}`}
	for name, test := range map[string]struct {
		request
		place   string
		refused bool
	}{
		"a labelled RayCluster":                       {request{user: tenant, resource: rayClusters, create: rayCluster(queue, own)}, elsewhere, true},
		"a RayCluster without a label":                {request{user: tenant, resource: rayClusters, create: rayCluster(`"annotations":{}`, own)}, namespace, false},
		"an AppWrapper of a queue":                    {wrapper, namespace, true},
		"an AppWrapper elsewhere":                     {wrapper, elsewhere, false},
		"a pod of a workload, changed":                {request{user: tenant, resource: pods, patch: `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`}, namespace, true},
		"a pod of a workload, changed by Kubernetes":  {request{user: kubernetes, resource: pods, patch: `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`}, namespace, false},
		"a RayCluster of a workload, by its operator": {request{user: operator, resource: rayClusters, patch: `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`}, namespace, false},
		"a RayCluster that the dispatcher creates":    {request{user: dispatcher, resource: rayClusters, create: rayCluster(ofOne, own)}, namespace, false},
		"a pod of another":                            {request{user: tenant, resource: pods, create: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"made"},"spec":{` + podSpec + `}}`}, namespace, false},
	} {
		made, err := w.send(test.request, test.place)
		if refused := err != nil && strings.Contains(err.Error(), "failed calling webhook"); refused != test.refused || err != nil && !test.refused {
			w.t.Errorf("without intake, %s: %v, want a refusal: %t", name, err, test.refused)
		}
		if err == nil && test.create != "" && made.GetAnnotations()["muster.dev/user"] != "" {
			w.t.Errorf("without intake, %s is stamped: the policies are still in force", name)
		}
	}
}

// nothingOfWebhooks checks that policies have replaced all of them.
func (w *world) nothingOfWebhooks() {
	w.t.Helper()
	for _, gone := range []struct{ group, resource, place, name string }{
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", rbac.WebhookConfiguration},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", rbac.WebhookConfiguration},
		{"rbac.authorization.k8s.io", "clusterroles", "", "muster-intake-webhook"},
		{"", "secrets", rbac.Namespace, rbac.WebhookSecret},
	} {
		kind := schema.GroupVersionResource{Group: gone.group, Version: "v1", Resource: gone.resource}
		_, err := w.client("").Resource(kind).Namespace(gone.place).Get(w.t.Context(), gone.name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			w.t.Errorf("after the policies are back, %s %s: %v, want it gone", gone.resource, gone.name, err)
		}
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
