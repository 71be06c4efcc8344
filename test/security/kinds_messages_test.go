package security

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// Who may only submit gets no right by what it has wrapped beside its gang.
func TestASubmitterGetsNoRightByWhatItWraps(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{})
	for name, c := range map[string]struct{ object, want string }{
		"token of a service account": {
			"apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: stolen, annotations: {kubernetes.io/service-account.name: default}}",
			"kind: is Secret"},
		"bootstrap token":    {"apiVersion: v1\nkind: Secret\ntype: bootstrap.kubernetes.io/token\nmetadata: {name: stolen}", "kind: is Secret"},
		"network policy":     {"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: open}\nspec: {podSelector: {}, ingress: [{}]}", `"NetworkPolicy.networking.k8s.io"`},
		"external addresses": {"apiVersion: v1\nkind: Service\nmetadata: {name: takes}\nspec: {externalIPs: [10.0.0.1], ports: [{port: 443}]}", "externalIPs"},
		"load balancer":      {"apiVersion: v1\nkind: Service\nmetadata: {name: takes}\nspec: {type: LoadBalancer, ports: [{port: 443}]}", `"LoadBalancer"`},
		"service account":    {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: mine}", "created for no queue"},
		"role":               {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: mine}", "created for no queue"},
		"lease":              {"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: mine}", `"Lease.coordination.k8s.io"`},
		"path as a name":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../kube-system/configmaps/x}", "metadata.name"},
		"pod in a job": {
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: mine}\nspec: {template: {spec: {restartPolicy: Never, hostPID: true, containers: [{name: c, image: i}]}}}",
			"hostPID=true"},
		"another's service account": {
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: mine}\nspec: {template: {spec: {restartPolicy: Never, serviceAccountName: admin, containers: [{name: c, image: i}]}}}",
			`serviceAccountName: is "admin"`},
	} {
		t.Run(name, func(t *testing.T) {
			id := w.submit(stack.AppWrapper(w.Namespace, "attack", stack.RayCluster("attack", 0, 0), c.object))
			if why := w.refused(id); !strings.Contains(why, c.want) {
				t.Errorf("%s: refused because %q, want %q", name, why, c.want)
			}
		})
	}
	secrets, err := w.Kube.CoreV1().Secrets(w.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) > 0 {
		t.Errorf("there are %d secrets, %v", len(secrets.Items), err)
	}
}

// What Kubernetes' own pod security admission refuses is refused in messages, too.
func TestPodsThatTheStandardsRefuse(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{})
	container := func(field string, value any) func(map[string]any) {
		return func(template map[string]any) {
			template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)[field] = value
		}
	}
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"AppArmor annotation": {func(template map[string]any) {
			template["metadata"] = map[string]any{"annotations": map[string]any{"container.apparmor.security.beta.kubernetes.io/ray-worker": "unconfined"}}
		}, "forbidden AppArmor profile"},
		"host of a probe":  {container("livenessProbe", map[string]any{"httpGet": map[string]any{"host": "169.254.169.254", "port": 80}}), "probe or lifecycle host"},
		"port of the node": {container("ports", []any{map[string]any{"containerPort": 1, "hostPort": 1}}), "hostPort"},
		"service account":  {func(template map[string]any) { template["spec"].(map[string]any)["serviceAccountName"] = "admin" }, `is "admin"`},
	} {
		t.Run(name, func(t *testing.T) {
			if why := w.refused(w.submit(stack.WorkerTemplate(stack.RayCluster("attack", 1, 0), c.change))); !strings.Contains(why, c.want) {
				t.Errorf("%s: refused because %q, want %q", name, why, c.want)
			}
		})
	}
	restricted := newTenants(t, workload.Rules{Pods: workload.PodPolicy{Mode: workload.PodsRestricted}})
	manifest := stack.WorkerTemplate(stack.RayCluster("attack", 1, 0), container("ports", []any{map[string]any{"containerPort": 1, "hostPort": 1}}))
	if why := restricted.refused(restricted.submit(manifest)); !strings.Contains(why, "Pod Security Standard restricted") {
		t.Errorf("a port of the node under restricted: refused because %q", why)
	}
	for what, context := range map[string]map[string]any{
		"user 0":        {"runAsUser": 0, "runAsNonRoot": true},
		"root by image": {"runAsNonRoot": false},
	} {
		manifest := stack.WorkerTemplate(stack.RayCluster("attack", 1, 0), container("securityContext", context))
		if why := restricted.refused(restricted.submit(manifest)); !strings.Contains(why, "Pod Security Standard restricted") || !strings.Contains(why, "runAs") {
			t.Errorf("%s under restricted: refused because %q", what, why)
		}
	}
}

// Objects of a submitter that the queue binds to a user are created with no more
// rights than that user has, whatever Muster itself may do.
func TestASubmitterHasTheRightsOfItsUser(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{Identities: []workload.Bound{{Who: []string{workload.ByNATS}, User: "trainer"}}})
	if err := w.AddNodes(t.Context(), "cpu", 1, "cpu=8", "memory=32Gi"); err != nil {
		t.Fatal(err)
	}
	w.as("trainer", rbacv1.PolicyRule{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"create"}})
	id := w.submit(stack.AppWrapper(w.Namespace, "beyond", append(stack.PlainObjects("beyond"), stack.RayCluster("beyond", 1, 0))...))
	if why := w.reaches(id, workload.Failed); !strings.Contains(why, `user "trainer" may not create configmaps in namespace `+w.Namespace) {
		t.Errorf("the reason is %q", why)
	}
	secrets, err := w.Kube.CoreV1().Secrets(w.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) > 0 {
		t.Errorf("there are %d secrets, %v", len(secrets.Items), err)
	}
	w.reaches(w.submit(stack.RayCluster("within", 1, 0)), workload.Running)
}
