package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

const wrappedJob = `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": %q}, "spec": {"template": {
	"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]}}}}`

// bundle is the command for a workload of a Job and these objects.
func (w *world) bundle(id workload.ID, others ...string) event.GangCommand {
	w.t.Helper()
	wrapped := bundle.Bundle{}
	for _, object := range append([]string{fmt.Sprintf(wrappedJob, id)}, others...) {
		wrapped.Items = append(wrapped.Items, bundle.Item{Object: json.RawMessage(object)})
	}
	wrapped.Items[0].MakesPods = true
	wrapped.Items[0].Templates = []bundle.Template{{PodSet: "job", Path: []string{"spec", "template"}}}
	manifest, err := wrapped.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return event.GangCommand{
		Workload: id, Cluster: clusterName, Attempt: 1, Epoch: 1, State: event.Present, Queue: "q",
		Kind: "AppWrapper", Namespace: w.namespace, Name: string(id), Manifest: manifest,
		PodSets:    []workload.PodSet{{Name: "job", Count: 1}},
		Placements: []workload.Placement{{PodSet: "job", Node: w.nodes[0], Pods: 1}},
	}
}

// TestRefusedKindsAreTakenBack: when an object of a bundle is refused, everything
// that was created is deleted and the places are given back, whatever the dispatcher
// may read.
func TestRefusedKindsAreTakenBack(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "taken-back", 1), newStep(t)
	w.mayCreateUnseen("serviceaccounts")
	const (
		role    = `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}`
		account = `{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "unseen"}}`
	)
	bundles := map[workload.ID][]string{
		"back-role":   {role},
		"back-lease":  {`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}`},
		"back-path":   {`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a/b"}}`},
		"back-unseen": {account, role}, // created, then not readable
	}
	w.run(d)
	for id, others := range bundles {
		d.command(w.bundle(id, others...))
	}
	for id := range bundles {
		status := d.await(id, "refused", func(s event.GangStatus) bool { return s.Refused })
		if !strings.Contains(status.Message, "creation failure") {
			t.Errorf("%s is refused with %q; want the object and the answer", id, status.Message)
		}
		if _, err := w.core.BatchV1().Jobs(w.namespace).Get(t.Context(), string(id), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the Job of %s is left: %v", id, err)
		}
	}
	if _, err := w.core.CoreV1().ServiceAccounts(w.namespace).Get(t.Context(), "unseen", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ServiceAccount is left: %v", err)
	}
}

// mayCreateUnseen lets the dispatcher create and delete a resource that it may not
// read.
func (w *world) mayCreateUnseen(resource string) {
	w.t.Helper()
	rights := w.core.RbacV1()
	meta := metav1.ObjectMeta{Name: "unseen"}
	_, err := rights.Roles(w.namespace).Create(w.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"create", "delete"}},
	}}, metav1.CreateOptions{})
	if err == nil {
		_, err = rights.RoleBindings(w.namespace).Create(w.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "unseen"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: rbac.Dispatcher, Namespace: rbac.Namespace}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
