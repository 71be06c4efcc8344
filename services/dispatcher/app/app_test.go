package app_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// TestLife: a gang comes into being as planned, once however often it is
// commanded, and goes away whole.
func TestLife(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "life", 2), newStep(t)
	w.run(d)
	gang := w.gang("life-gang", "life", workers{1, 2})
	d.command(gang)
	d.command(gang)
	d.awaitCreated(gang.Workload)
	want := map[string]int{"headgroup on life-0": 1, "small on life-0": 1, "small on life-1": 2}
	w.await("pods run as placed", func() bool { return cmp.Equal(want, w.running(gang.Workload)) })
	object := w.object("RayCluster", "life")
	d.command(gang)
	labels := map[string]string{
		kube.ClusterLabel: clusterName, kube.WorkloadLabel: "life-gang", kube.AttemptLabel: "1", kube.QueueLabel: "q",
	}
	if diff := cmp.Diff(labels, object.GetLabels()); diff != "" {
		t.Errorf("labels of the object (-want +got):\n%s", diff)
	}
	d.absent(gang)
	status := d.awaitReleased(gang.Workload)
	if !status.Gone || w.object("RayCluster", "life") != nil || len(w.pods(gang.Workload)) != 0 {
		t.Errorf("released while something is left: %+v\n%s", status, w.describe())
	}
}

// TestForeign: an object of the same name that is not ours is neither adopted
// nor deleted.
func TestForeign(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "foreign", 1), newStep(t)
	w.run(d)
	gang := w.gang("foreign-gang", "taken", workers{1})
	uid := w.create("RayCluster", fmt.Appendf(nil, rayCluster, "taken", 0, 0, 0), nil, nil)
	d.command(gang)
	status := d.await(gang.Workload, "refused", func(s event.GangStatus) bool { return s.Refused })
	if status.Created || status.Message == "" {
		t.Errorf("status is %+v, want a message and nothing created", status)
	}
	d.absent(gang)
	d.awaitReleased(gang.Workload)
	if object := w.object("RayCluster", "taken"); object == nil || object.GetUID() != uid || object.GetDeletionTimestamp() != nil {
		t.Errorf("the foreign object was touched: %v", object)
	}
}

// create makes an object as another user would.
func (w *world) create(kind string, manifest []byte, labels, annotations map[string]string) types.UID {
	w.t.Helper()
	read, err := ray.Read(manifest)
	if err != nil {
		w.t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(read.Manifest); err != nil {
		w.t.Fatal(err)
	}
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	created, err := w.objects.Resource(resource(kind)).Namespace(w.namespace).Create(w.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = w.objects.Resource(resource(kind)).Namespace(w.namespace).Delete(context.WithoutCancel(w.t.Context()), read.Name, metav1.DeleteOptions{})
	})
	return created.GetUID()
}

// TestRestart: a dispatcher that stops between creating and pinning is carried on
// by the next; one that starts beside a running gang changes nothing.
func TestRestart(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "restart", 2), newStep(t)
	stop := w.run(d)
	gang := w.gang("restart-gang", "restart", workers{1, 2})
	d.command(gang)
	w.await("object", func() bool { return w.object("RayCluster", "restart") != nil })
	stop()
	uid := w.object("RayCluster", "restart").GetUID()
	stop = w.run(d)
	d.awaitCreated(gang.Workload)
	want := map[string]int{"headgroup on restart-0": 1, "small on restart-0": 1, "small on restart-1": 2}
	w.await("pods run as placed", func() bool { return cmp.Equal(want, w.running(gang.Workload)) })
	stop()
	stop = w.run(d)
	if object := w.object("RayCluster", "restart"); object == nil || object.GetUID() != uid {
		t.Fatalf("not the earlier object: %v", object)
	}
	stop()
	d.absent(gang) // published while no dispatcher listens
	w.run(d)
	d.awaitReleased(gang.Workload)
}

// TestDeletedByOthers: an object that a user deletes is reported as gone and is not
// created again, by the next dispatcher neither.
func TestDeletedByOthers(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "deleted", 1), newStep(t)
	stop := w.run(d)
	gang := w.gang("deleted-gang", "deleted", workers{1})
	d.command(gang)
	w.await("pods run", func() bool { return len(w.running(gang.Workload)) == 2 })
	w.delete("RayCluster", "deleted")
	if status := d.awaitReleased(gang.Workload); !status.Gone || !status.Created {
		t.Errorf("status is %+v, want created and gone", status)
	}
	stop()
	w.run(d)
	second := w.gang("deleted-second", "second", workers{1})
	d.command(second) // when it is there, the first has been looked at
	d.awaitCreated(second.Workload)
	if w.object("RayCluster", "deleted") != nil {
		t.Error("the object was created again")
	}
}

// TestReplacements: pods that replace others, several at once, get the places
// that those have left, each its own.
func TestReplacements(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "replace", 4), newStep(t)
	w.run(d)
	gang := w.gang("replace-gang", "replace", workers{1, 2, 2, 2})
	d.command(gang)
	want := map[string]int{
		"headgroup on replace-0": 1, "small on replace-0": 1, "small on replace-1": 2, "small on replace-2": 2, "small on replace-3": 2,
	}
	w.await("pods run as placed", func() bool { return cmp.Equal(want, w.running(gang.Workload)) })
	now := int64(0)
	for range 5 {
		before := map[types.UID]bool{}
		for _, pod := range w.pods(gang.Workload) {
			if pod.Labels[kube.PodSetLabel] != "small" {
				continue
			}
			before[pod.UID] = true
			if err := w.core.CoreV1().Pods(w.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Fatal(err)
			}
		}
		w.await("replacements run as placed", func() bool {
			for _, pod := range w.pods(gang.Workload) {
				if before[pod.UID] {
					return false
				}
			}
			return cmp.Equal(want, w.running(gang.Workload))
		})
	}
}

// TestSweep: what Muster made and no workload owns any more in this cluster is removed; what
// another made, with whatever labels, is not.
func TestSweep(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "sweep", 1), newStep(t)
	labels := func(id string) map[string]string {
		return map[string]string{kube.ClusterLabel: clusterName, kube.WorkloadLabel: id, kube.AttemptLabel: "1"}
	}
	orphan := fmt.Appendf(nil, rayCluster, "orphan", 0, 0, 0)
	foreign := fmt.Appendf(nil, rayCluster, "foreign", 0, 0, 0)
	moved := fmt.Appendf(nil, rayCluster, "moved", 0, 0, 0)
	w.create("RayCluster", orphan, labels("sweep-orphan"), map[string]string{kube.EpochKey: "1"})
	w.create("RayCluster", foreign, labels("sweep-foreign"), nil)
	w.create("RayCluster", moved, labels("sweep-moved"), map[string]string{kube.EpochKey: "1"})
	err := query.Handle(t.Context(), d.bus.Conn(), query.WorkloadsSubject,
		func(_ context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
			// Objects of other tests' namespaces are seen, too, and are live.
			if r.ID == "sweep-orphan" || r.ID == "sweep-foreign" {
				return query.WorkloadsAnswer{}, nil
			}
			if r.ID == "sweep-moved" {
				return query.WorkloadsAnswer{Workloads: []workload.Record{{Cluster: "elsewhere", Attempt: 1, Holding: true}}}, nil
			}
			return query.WorkloadsAnswer{Workloads: []workload.Record{{Cluster: clusterName, Holding: true}}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	w.run(d)
	w.await("orphan removed", func() bool { return w.object("RayCluster", "orphan") == nil })
	w.await("what has moved elsewhere removed", func() bool { return w.object("RayCluster", "moved") == nil })
	w.create("RayCluster", orphan, labels("sweep-orphan"), map[string]string{kube.EpochKey: "1"})
	w.await("orphan removed again, after another sweep", func() bool { return w.object("RayCluster", "orphan") == nil })
	if w.object("RayCluster", "foreign") == nil {
		t.Error("an object that Muster did not make was removed")
	}
}

// TestJobs: a RayJob's end is reported, and that its pods are gone.
func TestJobs(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t, "jobs", 1), newStep(t)
	w.run(d)
	for outcome, want := range map[string]string{"succeeded": event.OutcomeSucceeded, "failed": event.OutcomeFailed} {
		object, err := ray.Read(fmt.Appendf(nil, rayJob, outcome, outcome))
		if err != nil {
			t.Fatal(err)
		}
		job := event.GangCommand{
			Workload: workload.ID("jobs-" + outcome), Cluster: clusterName, Attempt: 1, Epoch: 1, State: event.Present, Queue: "q",
			Kind: "RayJob", Namespace: w.namespace, Name: outcome, PodSets: object.PodSets, Manifest: object.Manifest,
		}
		for _, set := range object.PodSets {
			job.Placements = append(job.Placements, workload.Placement{PodSet: set.Name, Node: w.nodes[0], Pods: set.Count})
		}
		d.command(job)
		status := d.await(job.Workload, "outcome", func(s event.GangStatus) bool { return s.Outcome != "" })
		if status.Outcome != want || status.Message == "" {
			t.Errorf("%s: status is %+v, want outcome %s and a message", outcome, status, want)
		}
		d.awaitReleased(job.Workload)
		d.absent(job)
		d.await(job.Workload, "gone", func(s event.GangStatus) bool { return s.Gone && s.Released })
	}
}
