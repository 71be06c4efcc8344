package rbac

import (
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
		"Role muster-capacity-watcher-lease", "RoleBinding muster-capacity-watcher-lease",
		"ServiceAccount " + Dispatcher, "ClusterRole " + Dispatcher, "ClusterRoleBinding " + Dispatcher,
		"ClusterRole muster-dispatcher-writes", "Role muster-dispatcher-lease", "RoleBinding muster-dispatcher-lease",
		"ClusterRole muster-dispatcher-wrapped", "ClusterRole muster-wrap-common-kinds",
		"ServiceAccount " + Intake, "ClusterRole " + Intake, "ClusterRoleBinding " + Intake, "ClusterRole muster-intake-writes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

// TestLeastRights: nobody writes cluster-wide, but for the status of ClusterQueues,
// which belong to no namespace.
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
			if name == Intake && (cmp.Equal(rule.Resources, []string{"clusterqueues/status"}) ||
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
		if _, err := ForNamespace(bad); err == nil {
			t.Errorf("namespace %q is taken", bad)
		}
	}
}
