package clusters

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// mayCarry gives the dispatcher of a cluster the right to ConfigMaps and Secrets of two names in a
// namespace, as docs/clusters.md has it.
func mayCarry(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	resources := []string{"configmaps", "secrets"}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "muster-carried", Namespace: namespace},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: resources, ResourceNames: []string{"settings", "pull"}, Verbs: []string{"get", "update"}},
			{APIGroups: []string{""}, Resources: resources, Verbs: []string{"create"}},
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "muster-carried", Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "muster-carried"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: rbac.Dispatcher, Namespace: rbac.Namespace}},
	}
	if _, err := client.RbacV1().Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// referring is a RayCluster whose head refers to the ConfigMap settings and the Secret pull, and
// that runs in one cluster.
func referring(t *testing.T, name, cluster string) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(stack.RayCluster(name, 0, 0)), &object); err != nil {
		t.Fatal(err)
	}
	head := object["spec"].(map[string]any)["headGroupSpec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	head["imagePullSecrets"] = []any{map[string]any{"name": "pull"}}
	container := head["containers"].([]any)[0].(map[string]any)
	container["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": "settings"}}}
	manifest, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return stack.Annotated(string(manifest), kube.ClustersKey, workload.ClusterNameKey+"="+cluster)
}

// A gang that runs in another cluster gets copies of the ConfigMap and the Secret that its queue
// carries and to which it refers, and of no other. It waits for one that is not there. Gangs share the
// copies, which go with the last of them.
func TestObjectsTravelWithAGang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{Rules: workload.Rules{Carries: []workload.Carried{
		{Kind: workload.KindConfigMap, Name: "settings"}, {Kind: workload.KindSecret, Name: "pull"}, {Kind: workload.KindConfigMap, Name: "unused"},
	}}})
	mayCarry(t, w.Kube, w.Namespace)
	mayCarry(t, w.second.Kube, w.Namespace)
	w.nodes(0, 2, "cpu=8", "memory=32Gi")
	ctx := t.Context()
	for _, name := range []string{"settings", "unused"} {
		if _, err := w.Kube.CoreV1().ConfigMaps(w.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"lr": "0.1"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	a := w.submit(referring(t, "a", w.second.Name))
	b := w.submit(referring(t, "b", w.second.Name))
	w.await(a, "waits for the Secret", func(e *event.WorkloadChanged) bool {
		return e.Reason != nil && strings.Contains(e.Reason.Message, "Secret pull") && strings.Contains(e.Reason.Message, "cannot be copied")
	})
	if pods := podsOf(t, w.second.Kube, a); len(pods) > 0 {
		t.Errorf("without the Secret there are %d pods", len(pods))
	}
	content := map[string][]byte{".dockerconfigjson": []byte(`{"auths":{}}`)}
	if _, err := w.Kube.CoreV1().Secrets(w.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson, Data: content,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.runsIn(a, 1, w.second.Name)
	w.runsIn(b, 1, w.second.Name)
	there := w.second.Kube.CoreV1()
	w.until("the copies are there, with both owners", func() bool {
		settings, err := there.ConfigMaps(w.Namespace).Get(ctx, "settings", metav1.GetOptions{})
		if err != nil {
			return false
		}
		pull, err := there.Secrets(w.Namespace).Get(ctx, "pull", metav1.GetOptions{})
		return err == nil && len(settings.OwnerReferences) == 2 && len(pull.OwnerReferences) == 2 && settings.Data["lr"] == "0.1" &&
			pull.Type == corev1.SecretTypeDockerConfigJson && string(pull.Data[".dockerconfigjson"]) == `{"auths":{}}` &&
			pull.Annotations[kube.CarriedFromKey] == w.Pool && pull.Annotations[kube.CarriedDigestKey] != ""
	})
	if _, err := there.ConfigMaps(w.Namespace).Get(ctx, "unused", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a ConfigMap to which no gang refers was copied: %v", err)
	}
	w.cancel(a)
	w.until("the first gang is gone", func() bool { return len(podsOf(t, w.second.Kube, a)) == 0 })
	if _, err := there.Secrets(w.Namespace).Get(ctx, "pull", metav1.GetOptions{}); err != nil {
		t.Errorf("with the second gang there is no Secret: %v", err)
	}
	w.cancel(b)
	w.until("the copies are gone with the last gang", func() bool {
		_, noSettings := there.ConfigMaps(w.Namespace).Get(ctx, "settings", metav1.GetOptions{})
		_, noPull := there.Secrets(w.Namespace).Get(ctx, "pull", metav1.GetOptions{})
		return apierrors.IsNotFound(noSettings) && apierrors.IsNotFound(noPull)
	})
	if _, err := w.Kube.CoreV1().Secrets(w.Namespace).Get(ctx, "pull", metav1.GetOptions{}); err != nil {
		t.Errorf("the Secret itself is gone: %v", err)
	}
}
