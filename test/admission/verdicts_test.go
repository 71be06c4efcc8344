package admission

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/rbac"
)

const (
	patience  = time.Minute
	namespace = "research" // of a queue
	elsewhere = "elsewhere"
)

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
