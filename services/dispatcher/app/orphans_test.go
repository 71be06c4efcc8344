package app_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// pod makes a pod as another user would.
func (w *world) pod(name string, labels map[string]string, owner *metav1.OwnerReference) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, NodeSelector: map[string]string{"nowhere": "yes"}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if _, err := w.core.CoreV1().Pods(w.namespace).Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		now := int64(0)
		_ = w.core.CoreV1().Pods(w.namespace).Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
}

func (w *world) hasPod(name string) bool {
	w.t.Helper()
	list, err := w.core.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items) > 0
}

// TestSweepPods: pods with all of our labels that no live workload owns and
// nothing makes are removed; those of a live workload, of another controller,
// or with a part of the labels are not.
func TestSweepPods(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "sweeppods", 1), newStep(t)
	labels := func(id, set string) map[string]string {
		return map[string]string{kube.ClusterLabel: clusterName, kube.WorkloadLabel: id, kube.AttemptLabel: "1", kube.PodSetLabel: set}
	}
	owner, err := w.core.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	theirs := &metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes}
	partly := labels("sweeppods-gone", "")
	delete(partly, kube.PodSetLabel)
	kept := []string{"live", "of-another", "labelled-in-part"}
	w.pod("live", labels("sweeppods-live", "workers"), nil)
	w.pod("of-another", labels("sweeppods-gone", "workers"), theirs)
	w.pod("labelled-in-part", partly, nil)
	w.pod("orphan", labels("sweeppods-gone", "workers"), nil)
	err = query.Handle(t.Context(), d.bus.Conn(), query.WorkloadsSubject,
		func(_ context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
			if r.ID == "sweeppods-gone" {
				return query.WorkloadsAnswer{}, nil
			}
			return query.WorkloadsAnswer{Workloads: []workload.Record{{Cluster: clusterName, Holding: true}}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	w.run(d)
	w.await("orphan removed", func() bool { return !w.hasPod("orphan") })
	w.pod("orphan", labels("sweeppods-gone", "workers"), nil)
	w.await("orphan removed again, after another sweep", func() bool { return !w.hasPod("orphan") })
	for _, name := range kept {
		if !w.hasPod(name) {
			t.Errorf("pod %s was removed", name)
		}
	}
}

// TestYield: a command to give places up is answered when no pod is on them any
// more, also by the next dispatcher; a later one without it takes that back.
func TestYield(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "yield", 2), newStep(t)
	stop := w.run(d)
	gang := w.gang("yield-gang", "yield", workers{1, 1})
	d.command(gang)
	w.await("pods run as placed", func() bool {
		return cmp.Equal(map[string]int{"headgroup on yield-0": 1, "small on yield-0": 1, "small on yield-1": 1}, w.running(gang.Workload))
	})
	status := d.await(gang.Workload, "its sizes", func(s event.GangStatus) bool { return s.Sizes["small"] == 2 && s.Keeps["small"] == 2 })
	if status.UID == "" || status.Yielded != "" {
		t.Errorf("status is %+v, want the object's UID and nothing yielded", status)
	}
	less := gang
	less.Order, less.Yield = 1, "1-1"
	less.Placements = gang.Placements[:2]
	d.command(less)
	d.await(gang.Workload, "yielded", func(s event.GangStatus) bool { return s.Yielded == "1-1" })
	if running := w.running(gang.Workload); running["small on yield-1"] != 0 {
		t.Errorf("it says that the place is left, and running are %v", running)
	}
	stop()
	again := less
	again.Order, again.Yield = 2, "1-2"
	d.command(again) // published while no dispatcher listens
	w.run(d)
	d.await(gang.Workload, "yielded again", func(s event.GangStatus) bool { return s.Yielded == "1-2" })
	whole := gang
	whole.Order = 3
	d.command(whole)
	d.await(gang.Workload, "taken back", func(s event.GangStatus) bool { return s.Yielded == "" })
	w.await("all run again", func() bool { return w.running(gang.Workload)["small on yield-1"] == 1 })
	whole.Order = 4
	d.absent(whole)
	d.awaitReleased(gang.Workload)
}
