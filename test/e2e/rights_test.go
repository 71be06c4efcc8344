package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/rights"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/stack/stacktest"
)

// A walk through all that Muster does in a cluster uses every right that it has
// there, and needs no other; rights on Kueue's kinds are for package kubequeues to
// see. What the services ask is recorded between them and the API server.
func TestEveryRightIsUsed(t *testing.T) {
	t.Parallel()
	asked := rights.NewRecorder(t)
	w := startWorld(t, stack.Options{Through: asked.Through, MovingQueue: stacktest.MovingQueue, Rules: workload.Rules{ForceAfter: seconds(1)}})
	w.nodes("gpu", 1, "cpu=64", "memory=256Gi", "nvidia.com/gpu=16")
	walk := []func(*world){walkLeaseless, walkReplaced, walkWrapped, walkEvicted, walkCramped, walkKubectl, walkMoved, walkProvisioned, walkShown}
	for _, part := range walk {
		part(w)
	}
	grants, err := rights.Listed(w.Pool, w.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	used, refused := asked.Seen()
	for _, r := range rights.Unused(grants, used, func(r rights.Right) bool { return !r.OfKueue() }) {
		t.Errorf("%s, but does not", r)
	}
	for _, what := range refused {
		t.Errorf("refused: %s", what)
	}
	t.Logf("%d rights are listed, %d different requests were made", len(grants), len(used))
}

// walkLeaseless has the services make their deleted Leases again.
func walkLeaseless(w *world) {
	leases := w.Kube.CoordinationV1().Leases(rbac.Namespace)
	for _, service := range []string{rbac.CapacityWatcher, rbac.Dispatcher} {
		name := service + "-" + w.Pool
		if err := leases.Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
		w.until("Lease "+name+" is there again, and held", func() bool {
			held, err := leases.Get(w.ctx, name, metav1.GetOptions{})
			return err == nil && held.Spec.HolderIdentity != nil && *held.Spec.HolderIdentity != ""
		})
	}
}

// walkReplaced has the services stand by for another holder of their Leases, which does not renew
// them.
func walkReplaced(w *world) {
	const another = "another"
	leases := w.Kube.CoordinationV1().Leases(rbac.Namespace)
	for _, service := range []string{rbac.CapacityWatcher, rbac.Dispatcher} {
		name := service + "-" + w.Pool
		w.until("Lease "+name+" has another holder", func() bool {
			lease, err := leases.Get(w.ctx, name, metav1.GetOptions{})
			if err != nil {
				return false
			}
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(another), new(int32(2))
			lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
			_, err = leases.Update(w.ctx, lease, metav1.UpdateOptions{})
			return err == nil
		})
		w.until("Lease "+name+" is taken from it", func() bool {
			held, err := leases.Get(w.ctx, name, metav1.GetOptions{})
			return err == nil && held.Spec.HolderIdentity != nil && *held.Spec.HolderIdentity != another
		})
	}
}

// walkWrapped creates and removes an object of every kind that an AppWrapper may
// wrap by default. Of kinds that the cluster does not have, definitions are made.
func walkWrapped(w *world) {
	for _, kind := range [][3]string{
		{"scheduling.x-k8s.io", "podgroups", "PodGroup"}, {"scheduling.volcano.sh", "podgroups", "PodGroup"},
		{"jobset.x-k8s.io", "jobsets", "JobSet"}, {"kubeflow.org", "pytorchjobs", "PyTorchJob"}, {"batch.volcano.sh", "jobs", "Job"},
	} {
		w.define(kind[0], "v1", kind[1], kind[2])
	}
	const template = `{metadata: {labels: {app: wrapped}}, spec: {restartPolicy: RESTART, containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}}`
	always, never := strings.ReplaceAll(template, "RESTART", "Always"), strings.ReplaceAll(template, "RESTART", "Never")
	objects := []string{
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: wrapped}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: wrapped}\nspec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: \"1\"}}}]}",
		"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: wrapped}\nspec: {replicas: 1, serviceName: x, selector: {matchLabels: {app: wrapped}}, template: " + always + "}",
		"apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: wrapped}\nspec: {replicas: 1, selector: {matchLabels: {app: wrapped}}, template: " + always + "}",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: wrapped}\nspec: {template: " + never + "}",
		"apiVersion: scheduling.x-k8s.io/v1\nkind: PodGroup\nmetadata: {name: wrapped}\nspec: {}",
		"apiVersion: scheduling.volcano.sh/v1\nkind: PodGroup\nmetadata: {name: wrapped}\nspec: {}",
		"apiVersion: jobset.x-k8s.io/v1\nkind: JobSet\nmetadata: {name: wrapped}\nspec: {replicatedJobs: []}",
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: wrapped}\nspec: {pytorchReplicaSpecs: {}}",
		"apiVersion: batch.volcano.sh/v1\nkind: Job\nmetadata: {name: wrapped}\nspec: {tasks: []}",
	}
	id := w.submit(stack.AppWrapper(w.Namespace, "wrapped", append(objects, stack.PlainObjects("beside")...)...))
	w.reaches(id, workload.Dispatched)
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
	w.nothingOf(id)
}

// define makes a kind with no rules of its own, or another version of one that a test has made.
func (w *world) define(group, version, plural, kind string) {
	w.t.Helper()
	definitions := w.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %s
  scope: Namespaced
  names: {kind: %s, listKind: %sList, plural: %s, singular: %s}
  versions:
  - {name: %s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, plural, group, group, kind, kind, plural, strings.ToLower(kind), version), &definition.Object); err != nil {
		w.t.Fatal(err)
	}
	_, err := definitions.Create(w.ctx, definition, metav1.CreateOptions{})
	for apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		var known *unstructured.Unstructured
		if known, err = definitions.Get(w.ctx, definition.GetName(), metav1.GetOptions{}); err != nil {
			break
		}
		versions, _, _ := unstructured.NestedSlice(known.Object, "spec", "versions")
		added, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		if slices.ContainsFunc(versions, func(v any) bool { return v.(map[string]any)["name"] == version }) {
			break
		}
		added[0].(map[string]any)["storage"] = false
		if err = unstructured.SetNestedSlice(known.Object, append(versions, added...), "spec", "versions"); err == nil {
			_, err = definitions.Update(w.ctx, known, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.until(plural+"."+group+" is served", func() bool {
		found, err := w.Kube.Discovery().ServerResourcesForGroupVersion(group + "/" + version)
		return err == nil && slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
	})
}

// walkEvicted drains the node under a gang of each kind, and cancels them.
func walkEvicted(w *world) {
	cluster := func(name string) string {
		return stack.Annotated(stack.RayCluster(name, 1, 1), kube.CheckpointGraceKey, "1s")
	}
	gangs := map[string]string{
		"rayclusters": cluster("evicted"),
		"rayjobs":     stack.Annotated(stack.RayJob("evicted", 1, 1, "succeeded", "10m"), kube.CheckpointGraceKey, "1s"),
		"rayservices": edited(w.t, cluster("evicted-service"), func(object map[string]any) {
			object["kind"] = "RayService"
			object["spec"] = map[string]any{
				"serveConfigV2":    "applications:\n- name: app\n  import_path: a:b\n  deployments: [{name: d}]\n",
				"rayClusterConfig": object["spec"],
			}
		}),
	}
	ids := map[string]workload.ID{}
	for kind, manifest := range gangs {
		ids[kind] = w.submit(manifest)
	}
	for _, id := range ids {
		w.reaches(id, workload.Running)
	}
	node := w.NodeName("gpu", 0)
	w.taint(node, corev1.Taint{Key: capacity.DrainTaint, Effect: corev1.TaintEffectNoSchedule})
	for _, id := range ids {
		w.reaches(id, workload.Evicting)
		w.waits(id, workload.ReasonFit)
	}
	w.taint(node)
	for _, id := range ids {
		w.until("it runs again", func() bool { r := w.one(id); return r.Phase == workload.Running && r.Attempt > 1 })
		w.cancel(id)
		w.reaches(id, workload.Cancelled)
	}
}

// walkCramped has a gang wait for room in a quota.
func walkCramped(w *world) {
	w.limitPods(3)
	id := w.submit(stack.RayCluster("cramped", 3, 1))
	w.waitsForQuota(id)
	w.limitPods(100)
	w.reaches(id, workload.Running)
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
}

// walkKubectl takes objects through intake's Kubernetes controller, and removes them.
func walkKubectl(w *world) {
	w.kubectl(labelled(stack.RayCluster("held", 1, 1), "muster.dev/queue-name", "default"), "create", "-f", "-")
	w.kubectl(labelled(stack.RayJob("held-job", 1, 1, "succeeded", "10m"), "muster.dev/queue-name", "default"), "create", "-f", "-")
	running := runs
	w.rayObject("rayclusters", "held", running)
	w.rayObject("rayjobs", "held-job", running)
	w.kubectl("", "delete", "raycluster/held", "rayjob/held-job")

	wrapper := stack.AppWrapper(w.Namespace, "by-hand", stack.RayCluster("by-hand", 1, 1))
	legacy := strings.ReplaceAll(strings.ReplaceAll(wrapper, "by-hand", "by-hand-too"), "workload.codeflare.dev", "mcad.ibm.com")
	w.kubectl(wrapper, "create", "-f", "-")
	w.kubectl(legacy, "create", "-f", "-")
	for _, name := range []string{"by-hand", "by-hand-too"} {
		w.rayObject("rayclusters", name, func(*unstructured.Unstructured) bool { return true })
	}
	wrappers := []string{"appwrapper.workload.codeflare.dev/by-hand", "legacyappwrapper/by-hand-too"}
	for _, wrapper := range wrappers {
		w.until(wrapper+" has a status", func() bool { return w.kubectl("", "get", wrapper, "-o", "jsonpath={.status}") != "" })
	}
	w.kubectl("", "delete", wrappers[0], wrappers[1])

	w.kubectl(passing("passes"), "create", "-f", "-")
	w.until("it goes after its success", func() bool { return strings.Contains(w.kubectl("", "get", "appwrappers"), "No resources found") })
}

// walkMoved has intake mirror the statuses of what runs in the place of objects that move.
func walkMoved(w *world) {
	w.kubectl(labelled(stack.RayCluster("moved", 0, 0), "muster.dev/queue-name", stacktest.MovingQueue), "create", "-f", "-")
	w.kubectl(labelled(stack.RayJob("moved-job", 0, 0, "succeeded", "10m"), "muster.dev/queue-name", stacktest.MovingQueue), "create", "-f", "-")
	for resource, name := range map[string]string{"rayclusters": "moved", "rayjobs": "moved-job"} {
		w.rayObject(resource, name, func(of *unstructured.Unstructured) bool {
			status, _, _ := unstructured.NestedMap(of.Object, "status")
			return status["state"] == "ready" || status["jobDeploymentStatus"] == "Running"
		})
	}
	w.kubectl("", "delete", "raycluster/moved", "rayjob/moved-job")
}

// Whatever is not listed is refused: the API server's own authorizer is asked for
// every verb on every resource, in a queue's namespace, in another one, in Muster's
// own and for the whole cluster, and by the names that rights are bound to. What
// every account may do does not count.
func TestWhatIsNotListedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	grants, err := rights.Listed(w.Pool, w.Namespace)
	if err != nil || len(grants) == 0 {
		t.Fatal(grants, err)
	}
	other := "not-a-queue-" + w.Pool
	if _, err := w.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	var questions []authorizationv1.ResourceAttributes
	for _, resource := range w.resources(grants) {
		for _, verb := range verbs {
			for _, namespace := range []string{w.Namespace, other, rbac.Namespace, ""} {
				name, sub, _ := strings.Cut(resource.Resource, "/")
				questions = append(questions, authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: resource.Group, Resource: name, Subresource: sub,
				})
			}
		}
	}
	for _, g := range grants {
		if g.Name != "" {
			questions = append(questions, authorizationv1.ResourceAttributes{Verb: g.Verb, Group: g.Group, Resource: g.Resource, Name: g.Name})
		}
	}
	questions = append(questions, []authorizationv1.ResourceAttributes{
		{Verb: "impersonate", Resource: "users"}, {Verb: "impersonate", Resource: "serviceaccounts", Namespace: w.Namespace},
		{Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"}, {Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles"},
		{Verb: "approve", Group: "certificates.k8s.io", Resource: "signers"}, {Verb: "use", Group: "scheduling.k8s.io", Resource: "priorityclasses"},
	}...)
	accounts := []string{rbac.CapacityWatcher, rbac.Dispatcher, rbac.Intake}
	var asking sync.WaitGroup
	next := make(chan func())
	for range 8 {
		asking.Go(func() {
			for ask := range next {
				ask()
			}
		})
	}
	allowed := 0
	for _, account := range accounts {
		for _, q := range questions {
			r := rights.Right{Account: account, Verb: q.Verb, Group: q.Group, Resource: strings.TrimSuffix(q.Resource+"/"+q.Subresource, "/")}
			want := slices.ContainsFunc(grants, func(g rights.Grant) bool { return g.Covers(r, q.Namespace, q.Name) })
			if want {
				allowed++
			}
			next <- func() {
				if got := w.may(account, q); got != want && !w.may("default", q) {
					t.Errorf("%s %q in namespace %q: %v, want %v", r, q.Name, q.Namespace, got, want)
				}
			}
		}
	}
	close(next)
	asking.Wait()
	t.Logf("%d questions, of them %d to be answered with yes", len(accounts)*len(questions), allowed)
}

// resources lists all that the API server has, and what is listed for kinds that
// it does not have.
func (w *world) resources(listed []rights.Grant) []schema.GroupResource {
	w.t.Helper()
	found := map[schema.GroupResource]bool{}
	_, lists, err := w.Kube.Discovery().ServerGroupsAndResources()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			found[schema.GroupResource{Group: version.Group, Resource: resource.Name}] = true
		}
	}
	for _, g := range listed {
		found[schema.GroupResource{Group: g.Group, Resource: g.Resource}] = true
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
}

// may asks the API server's authorizer what an account of Muster's namespace may.
func (w *world) may(account string, attributes authorizationv1.ResourceAttributes) bool {
	deadline := time.Now().Add(patience)
	for {
		review, err := w.Kube.AuthorizationV1().SubjectAccessReviews().Create(w.ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + rbac.Namespace + ":" + account, ResourceAttributes: &attributes,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + rbac.Namespace, "system:authenticated"},
			},
		}, metav1.CreateOptions{})
		if err == nil {
			return review.Status.Allowed
		}
		if w.ctx.Err() != nil || time.Now().After(deadline) {
			w.t.Errorf("check whether %s may %v: %v", account, attributes, err)
			return false
		}
	}
}
