package security

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// Pods that run beside what was admitted do not stay: those of a wrapped Deployment
// whose template lost Muster's labels and gate, whatever the queue's rule; and a
// tenant's own, with no labels or those of another's gang, where the queue's rule is
// to evict. Where it is to count, they stay.
func TestPodsThatWereNotAdmittedDoNotStay(t *testing.T) {
	t.Parallel()
	counted, evicted := "counts-"+uuid.NewString()[:8], "evicts-"+uuid.NewString()[:8]
	w := newStack(t, stack.Options{Queues: []queuemanager.Queue{
		{Name: "default", Namespaces: []string{counted}}, {Name: "strict", Namespaces: []string{evicted}, StrayPods: workload.EvictStrays},
	}})
	if err := w.AddNodes(t.Context(), "cpu", 1, "cpu=16", "memory=64Gi"); err != nil {
		t.Fatal(err)
	}
	id := w.submit(stack.AppWrapper(counted, "wraps", stack.PlainObjects("wraps")[3]))
	w.reaches(id, workload.Running)
	own := w.podsOf(counted, kube.WorkloadLabel+"="+string(id))

	w.barePod(counted, "stays", nil)
	w.barePod(evicted, "goes", nil)
	w.barePod(evicted, "forged", map[string]string{kube.WorkloadLabel: string(id), kube.ClusterLabel: w.Pool, kube.AttemptLabel: "1", kube.PodSetLabel: "wraps-web"})
	w.until("the tenant's own pods are gone", func() bool {
		left := 0
		for _, name := range []string{"goes", "forged"} {
			if _, err := w.Kube.CoreV1().Pods(evicted).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				left++
			}
		}
		return left == 0
	})

	patch := `[{"op": "remove", "path": "/spec/template/spec/schedulingGates"}, {"op": "replace", "path": "/spec/template/metadata/labels", "value": {"app": "wraps"}}]`
	if _, err := w.Kube.AppsV1().Deployments(counted).Patch(t.Context(), "wraps-web", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	const unlabelled = "app=wraps,!" + kube.WorkloadLabel
	var first types.UID
	w.until("a pod without labels", func() bool {
		for uid := range w.podsOf(counted, unlabelled) {
			first = uid
		}
		return first != ""
	})
	w.until("it is gone", func() bool { _, there := w.podsOf(counted, unlabelled)[first]; return !there })
	if len(own) != 2 {
		t.Errorf("%d pods were admitted, want 2", len(own))
	}
	if pod, err := w.Kube.CoreV1().Pods(counted).Get(t.Context(), "stays", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("where pods are counted one is deleted: %v", err)
	}
}

// quotaOf is a policy with quota for a queue.
const quotaOf = `
resourceFlavors: [{name: any}]
clusterQueues:
- name: quota
  quotaCheckStrategy: IgnoreUndeclared
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 8}]}]}]
`

// Each rule for pods beside Muster does what it says: warn counts them in a metric and
// leaves them; evict deletes them in a queue with quota as in one without, those of a
// wrapped Deployment that lost its gate, too; and under trusted placement those beyond
// the gang's places.
func TestEachRuleForStrays(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()[:8]
	warned, quotaed, trusted := "warns-"+id, "quota-"+id, "trusts-"+id
	var policy quota.Config
	if err := yaml.UnmarshalStrict([]byte(quotaOf), &policy); err != nil {
		t.Fatal(err)
	}
	w := newStack(t, stack.Options{Policy: policy, Queues: []queuemanager.Queue{
		{Name: "default", Namespaces: []string{warned}, StrayPods: workload.WarnOfStrays},
		{Name: "quota", Namespaces: []string{quotaed}, StrayPods: workload.EvictStrays},
		{Name: "trusted", Namespaces: []string{trusted}, StrayPods: workload.EvictStrays, Rules: workload.Rules{Placement: workload.Trusted}},
	}})
	if err := w.AddNodes(t.Context(), "cpu", 1, "cpu=16", "memory=64Gi"); err != nil {
		t.Fatal(err)
	}
	wrapped := w.submitTo("quota", stack.AppWrapper(quotaed, "wraps", stack.PlainObjects("wraps")[3]))
	scaled := w.submitTo("trusted", stack.AppWrapper(trusted, "scales", stack.PlainObjects("scales")[3]))
	w.reaches(wrapped, workload.Running)
	w.reaches(scaled, workload.Running)
	admitted := w.podsOf(trusted, kube.WorkloadLabel+"="+string(scaled))

	w.barePod(warned, "stays", nil)
	w.barePod(quotaed, "goes", nil)
	w.until("the metric has the pod that is warned of", func() bool { return w.strays(warned) == 1 })
	w.until("the pod beside quota is gone", func() bool {
		_, err := w.Kube.CoreV1().Pods(quotaed).Get(t.Context(), "goes", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if pod, err := w.Kube.CoreV1().Pods(warned).Get(t.Context(), "stays", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("where pods are warned of one is deleted: %v", err)
	}

	patch := `[{"op": "remove", "path": "/spec/template/spec/schedulingGates"}, {"op": "replace", "path": "/spec/template/metadata/labels", "value": {"app": "wraps"}}]`
	if _, err := w.Kube.AppsV1().Deployments(quotaed).Patch(t.Context(), "wraps-web", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.seenGone("pods without labels in a queue with quota", func() map[types.UID]string { return w.podsOf(quotaed, "app=wraps,!"+kube.WorkloadLabel) })

	replicas := `{"spec": {"replicas": 4}}`
	if _, err := w.Kube.AppsV1().Deployments(trusted).Patch(t.Context(), "scales-web", types.MergePatchType, []byte(replicas), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.seenGone("pods beyond the places under trusted placement", func() map[types.UID]string {
		more := w.podsOf(trusted, kube.WorkloadLabel+"="+string(scaled))
		maps.DeleteFunc(more, func(uid types.UID, _ string) bool { return admitted[uid] != "" })
		return more
	})
}

// seenGone waits until there is a pod of those, and then until it is gone.
func (w *tenants) seenGone(what string, those func() map[types.UID]string) {
	w.t.Helper()
	var first types.UID
	w.until(what, func() bool {
		for uid := range those() {
			first = uid
		}
		return first != ""
	})
	w.until("these are gone: "+what, func() bool { _, there := those()[first]; return !there })
}

// strays is what the dispatcher's metric says of a namespace; -1 for nothing.
func (w *tenants) strays(namespace string) float64 {
	w.t.Helper()
	families, err := w.Runtimes()[stack.Dispatcher].Metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "muster_dispatcher_stray_pods" && metric.GetLabel()[0].GetValue() == namespace {
				return metric.GetGauge().GetValue()
			}
		}
	}
	return -1
}

// podsOf returns the names of the pods that the labels select, by UID.
func (w *tenants) podsOf(namespace, labels string) map[types.UID]string {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Pods(namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: labels})
	if err != nil {
		w.t.Fatal(err)
	}
	pods := map[types.UID]string{}
	for _, pod := range list.Items {
		pods[pod.UID] = pod.Name
	}
	return pods
}

// barePod creates a pod of nothing, as soon as the namespace takes pods.
func (w *tenants) barePod(namespace, name string, labels map[string]string) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	w.until("creation of pod "+name, func() bool {
		_, err := w.Kube.CoreV1().Pods(namespace).Create(w.t.Context(), pod, metav1.CreateOptions{})
		if err != nil && !strings.Contains(err.Error(), "serviceaccount") {
			w.t.Fatal(err)
		}
		return err == nil
	})
}
