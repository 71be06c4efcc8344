package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
)

// TestPodsPastMuster: pods that a workload's RayCluster makes without the labels and
// the gate that Muster set are deleted, as often as they are made, and the status
// says so; the gang's own pods stay.
func TestPodsPastMuster(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "past", 1), newStep(t)
	w.run(d)
	gang := w.gang("past-gang", "past", workers{1})
	d.command(gang)
	want := map[string]int{"headgroup on past-0": 1, "small on past-0": 1}
	w.await("pods run as placed", func() bool { return cmp.Equal(want, w.running(gang.Workload)) })
	own := map[types.UID]bool{}
	for _, pod := range w.pods(gang.Workload) {
		own[pod.UID] = true
	}

	// As the service account of the head may, which scales the cluster.
	patch := `[
		{"op": "remove", "path": "/spec/workerGroupSpecs/0/template/metadata/labels"},
		{"op": "remove", "path": "/spec/workerGroupSpecs/0/template/spec/schedulingGates"},
		{"op": "replace", "path": "/spec/workerGroupSpecs/0/maxReplicas", "value": 3},
		{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3}]`
	if _, err := w.objects.Resource(resource("RayCluster")).Namespace(w.namespace).Patch(t.Context(), "past", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	unlabelled := func() (uids []types.UID) {
		list, err := w.core.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: kube.RayClusterLabel + ",!" + kube.WorkloadLabel})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range list.Items {
			uids = append(uids, pod.UID)
		}
		return uids
	}
	var first []types.UID
	w.awaitEvery(5*time.Millisecond, "pods without labels", func() bool { first = unlabelled(); return len(first) > 0 })
	w.await("these are gone", func() bool {
		for _, uid := range unlabelled() {
			if uid == first[0] {
				return false
			}
		}
		return true
	})
	d.await(gang.Workload, "says why", func(s event.GangStatus) bool { return strings.Contains(s.Message, "changed after the admission") })

	// A pod that names the RayCluster as its controller, with another one's labels.
	yes := true
	owner := &metav1.OwnerReference{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "past", UID: w.object("RayCluster", "past").GetUID(), Controller: &yes}
	w.pod("past-forged", map[string]string{
		kube.RayClusterLabel: "past", kube.ClusterLabel: clusterName, kube.WorkloadLabel: "another", kube.AttemptLabel: "1", kube.PodSetLabel: "small",
	}, owner)
	w.await("the forged pod is gone", func() bool { return !w.hasPod("past-forged") })
	for _, pod := range w.pods(gang.Workload) {
		if delete(own, pod.UID); pod.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s of the gang is %s", pod.Name, pod.Status.Phase)
		}
	}
	if len(own) > 0 {
		t.Errorf("%d pods of the gang are gone", len(own))
	}
}
