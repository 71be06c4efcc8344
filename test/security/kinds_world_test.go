package security

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/stack/stacktest"
)

var (
	rayClusters = ray.Resource("rayclusters")
	podsOf      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// tenants is a stack that tenants attack.
type tenants struct {
	*stack.Stack
	t          *testing.T
	kubeconfig string
	heard      *bustest.Listener
	database   string // as its owner
	sent       int
}

// newTenants starts a stack with a queue "default" under the rules.
func newTenants(t *testing.T, rules workload.Rules) *tenants {
	t.Helper()
	return newStack(t, stack.Options{Rules: rules})
}

// newStack is newTenants with other settings of the stack.
func newStack(t *testing.T, o stack.Options) *tenants {
	t.Helper()
	cluster := shared.Use(t)
	o.Cluster, o.Installed, o.DatabaseURL, o.Dir = cluster.Cluster, true, databases.Database(t), t.TempDir()
	o.Logger = zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	s, err := stack.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &tenants{Stack: s, t: t, kubeconfig: cluster.Kubeconfig, heard: bustest.New(t), database: o.DatabaseURL}
	t.Cleanup(s.Stop)
	t.Cleanup(cancel)
	w.heard.Listen(ctx, s.Bus, bus.EventsStream, "muster.events.*.*")
	return w
}

// submit publishes a manifest to the queue "default", as NATS lets a submitter.
func (w *tenants) submit(manifest string) workload.ID {
	w.t.Helper()
	return w.submitTo("default", manifest)
}

// submitTo is submit to another queue.
func (w *tenants) submitTo(queue, manifest string) workload.ID {
	w.t.Helper()
	w.sent++
	data := json.RawMessage(manifest)
	if !json.Valid(data) {
		text, err := json.Marshal(manifest)
		if err != nil {
			w.t.Fatal(err)
		}
		data = text
	}
	id := fmt.Sprintf("attack-%d", w.sent)
	envelope := event.Envelope{SpecVersion: event.SpecVersion, ID: id, Source: w.Pool, Type: event.SubmitType, DataContentType: "application/json", Data: data}
	encoded, err := envelope.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	published, err := w.Bus.PublishEncoded(event.SubmitSubject(queue), event.NewID(), encoded, 0)
	if err == nil {
		err = published.Wait(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return event.WorkloadID(w.Pool, id)
}

// refused waits until the submission is rejected, and returns why.
func (w *tenants) refused(id workload.ID) string {
	w.t.Helper()
	return bustest.Await(w.heard, patience, "rejection of "+string(id), func(e *event.WorkloadRejected) bool { return e.Workload == id }, nil).Reason.Message
}

// reaches waits until the workload has been in the phase, and returns its reason.
func (w *tenants) reaches(id workload.ID, phase workload.Phase) string {
	w.t.Helper()
	changed := bustest.Await(w.heard, patience, string(id)+" "+string(phase), func(e *event.WorkloadChanged) bool { return e.ID == id && e.Phase == phase }, nil)
	if changed.Reason == nil {
		return ""
	}
	return changed.Reason.Message
}

// as returns a client of a user who has been given the rules in the stack's namespace.
func (w *tenants) as(user string, rules ...rbacv1.PolicyRule) dynamic.Interface {
	w.t.Helper()
	return w.asIn(w.Namespace, user, rules...)
}

// asIn is as in another namespace.
func (w *tenants) asIn(namespace, user string, rules ...rbacv1.PolicyRule) dynamic.Interface {
	w.t.Helper()
	return dynamic.NewForConfigOrDie(w.configOf(namespace, user, rules...))
}

// configOf gives a user rights in a namespace and returns the configuration of clients that
// act as that user.
func (w *tenants) configOf(namespace, user string, rules ...rbacv1.PolicyRule) *rest.Config {
	w.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	config.QPS = -1
	config.Impersonate.UserName, config.Impersonate.Groups = user, []string{"system:authenticated"}
	name := strings.ReplaceAll(user, ":", ".")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := w.Kube.RbacV1().Roles(namespace).Create(w.t.Context(), role, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.Kube.RbacV1().RoleBindings(namespace).Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return config
}

func (w *tenants) until(what string, met func() bool) {
	w.t.Helper()
	stacktest.Until(w.t, stacktest.Often, patience, what, met)
}

// create creates a RayCluster as the client's user, as soon as its rights count.
func (w *tenants) create(client dynamic.Interface, manifest string) *unstructured.Unstructured {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(manifest), &object.Object); err != nil {
		w.t.Fatal(err)
	}
	var created *unstructured.Unstructured
	var err error
	w.until("creation of "+object.GetName(), func() bool {
		created, err = client.Resource(rayClusters).Namespace(w.Namespace).Create(w.t.Context(), object, metav1.CreateOptions{})
		return err == nil || !strings.Contains(err.Error(), "is forbidden: User")
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return created
}

// denied checks that an admission policy has refused a change.
func denied(t *testing.T, what string, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: error %v, want a refusal that says %q", what, err, words)
	}
}
