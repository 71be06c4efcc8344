package rbac

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestDocuments reads each document and names what is there.
func TestDocuments(t *testing.T) {
	t.Parallel()
	var got []string
	for _, document := range Documents() {
		var object struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
		}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		got = append(got, object.Kind+" "+object.Name)
	}
	want := []string{
		"Namespace " + Namespace,
		"ServiceAccount " + CapacityWatcher, "ClusterRole " + CapacityWatcher, "ClusterRoleBinding " + CapacityWatcher,
		"ServiceAccount " + Dispatcher, "ClusterRole " + Dispatcher, "ClusterRoleBinding " + Dispatcher,
		"ClusterRole muster-dispatcher-writes",
		"ClusterRole muster-dispatcher-wrapped", "ClusterRole muster-wrap-common-kinds",
		"ServiceAccount " + Intake, "ClusterRole " + Intake, "ClusterRoleBinding " + Intake, "ClusterRole muster-intake-writes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

// TestLeastRights: no account writes cluster-wide, except the status and the finalizers of
// queue objects that belong to no namespace.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	roles, bound := map[string]rbacv1.ClusterRole{}, []string{}
	for _, document := range Documents() {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(document, &role); err == nil && role.Kind == "ClusterRole" {
			roles[role.Name] = role
		}
		var binding rbacv1.ClusterRoleBinding
		if err := yaml.UnmarshalStrict(document, &binding); err == nil && binding.Kind == "ClusterRoleBinding" {
			bound = append(bound, binding.RoleRef.Name)
		}
	}
	if len(roles) != 7 || len(bound) != 3 {
		t.Fatalf("got roles %v, bound %v; want 7 and 3", roles, bound)
	}
	for _, name := range bound {
		for _, rule := range roles[name].Rules {
			if cmp.Equal(rule.Resources, []string{"subjectaccessreviews"}) {
				continue // a question, although it is put as a creation
			}
			if name == Intake && (cmp.Equal(rule.Resources, []string{"clusterqueues", "clusterqueues/status", "resourceflavors", "admissionchecks/status"}) ||
				len(rule.ResourceNames) > 0 && cmp.Equal(rule.Verbs, []string{"get"})) {
				continue
			}
			for _, verb := range rule.Verbs {
				if !slices.Contains([]string{"get", "list", "watch"}, verb) {
					t.Errorf("%s may %s %v cluster-wide", name, verb, rule.Resources)
				}
			}
		}
	}
}

// TestServicesHoldTheirOwnLeasesOnly: a service may hold the Lease of its cluster, and no other
// one. It may make Leases, in this namespace alone, because that cannot be bound by name.
func TestServicesHoldTheirOwnLeasesOnly(t *testing.T) {
	t.Parallel()
	documents, err := ForCluster("east")
	if err != nil || len(documents) != 6 {
		t.Fatalf("got %d documents, error %v; want a Lease, a role and a binding for two services", len(documents), err)
	}
	var roles []rbacv1.Role
	for _, document := range append(documents, Documents()...) {
		var role rbacv1.Role
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "leases") }) {
			roles = append(roles, role)
		}
	}
	if len(roles) != 2 {
		t.Fatalf("%d roles have to do with Leases, want 2", len(roles))
	}
	for i, service := range []string{CapacityWatcher, Dispatcher} {
		t.Run(service, func(t *testing.T) {
			want := []rbacv1.PolicyRule{
				{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{service + "-east"}, Verbs: []string{"get", "update", "watch"}},
				{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			}
			if roles[i].Kind != "Role" || roles[i].Namespace != Namespace {
				t.Errorf("%s has a %s in namespace %q, want a Role in %q", service, roles[i].Kind, roles[i].Namespace, Namespace)
			}
			if diff := cmp.Diff(want, roles[i].Rules); diff != "" {
				t.Errorf("%s (-want +got):\n%s", service, diff)
			}
		})
	}
	if _, err := ForCluster("Not a cluster"); err == nil {
		t.Error("a bad name of a cluster is taken")
	}
}

func TestForNamespace(t *testing.T) {
	t.Parallel()
	documents, err := ForNamespace("team-a")
	if err != nil || len(documents) != 3 {
		t.Fatalf("got %d documents, error %v", len(documents), err)
	}
	var got rbacv1.RoleBinding
	if err := yaml.UnmarshalStrict(documents[0], &got); err != nil {
		t.Fatal(err)
	}
	want := rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: Dispatcher, Namespace: "team-a"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "muster-dispatcher-writes"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: Dispatcher, Namespace: Namespace}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("role binding (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "Team", "a_b", "a\nb: c", "-a"} {
		t.Run(fmt.Sprintf("%q", bad), func(t *testing.T) {
			if _, err := ForNamespace(bad); err == nil {
				t.Errorf("namespace %q is taken", bad)
			}
		})
	}
}

// TestWebhooksAreBoundByName: intake may read and write one Secret, and the configurations of
// its own webhooks, and make neither.
func TestWebhooksAreBoundByName(t *testing.T) {
	t.Parallel()
	names := map[string]string{"secrets": WebhookSecret, "validatingwebhookconfigurations": WebhookConfiguration}
	rules := 0
	for _, document := range ForWebhooks() {
		var role rbacv1.ClusterRole // a Role reads the same
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			rules++
			if diff := cmp.Diff([]string{names[rule.Resources[0]]}, rule.ResourceNames); diff != "" {
				t.Errorf("%v (-want +got):\n%s", rule.Resources, diff)
			}
			if diff := cmp.Diff([]string{"get", "update"}, rule.Verbs); diff != "" {
				t.Errorf("%v (-want +got):\n%s", rule.Resources, diff)
			}
		}
	}
	if rules != 2 {
		t.Errorf("there are %d rules, want 2", rules)
	}
}
